/* Comes before every source of the programs in this directory. */
#ifndef TESTS_POINTS_POINTS_H
#define TESTS_POINTS_POINTS_H

/* Of the file that is compiled, by its path from the top. */
#define POINT(name) point_passed(POINTS_OF " " name)

void point_passed(const char *point);

#endif
