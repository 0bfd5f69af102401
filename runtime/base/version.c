/* The version of the library that runs. */
#include "fusedlogp.h"

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *flp_version(void)
{
    return VERSION_TEXT(FLP_VERSION_MAJOR, FLP_VERSION_MINOR, FLP_VERSION_PATCH);
}
