function sensitivitySection() { return null; }
function graphSection() { return null; }
function profileSection() { return null; }
