/* The joined page, which cmake/page.cmake makes. */
#ifndef REPORT_PAGE_H
#define REPORT_PAGE_H

#include <stddef.h>

#define PAGE_DATA "@DATA@" /* what the run's JSON replaces */

extern const unsigned char report_page[];
extern const size_t report_page_size;

#endif
