#include <stdio.h>

int main(void)
{
	puts("fettle");
	return 0;
}
