#include "fettle.h"
