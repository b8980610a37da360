/* Every transform. */
TRANSFORM(resize)
TRANSFORM(center_crop)
TRANSFORM(normalize)
TRANSFORM(rescale)
TRANSFORM(transpose)
TRANSFORM(cast)
