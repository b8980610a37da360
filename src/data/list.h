/* Every kind of dataset, in the order in which they are asked whether a path is theirs. */
DATASET(npz)
DATASET(testset)
DATASET(images)
DATASET(imagenet_raw)
DATASET(coco_raw)
