#ifndef REPORT_CAPABILITY_H
#define REPORT_CAPABILITY_H

/* What the runtime computes in integers on this CPU, as the YAML that --capability takes; free() it. */
char *capability_text(void);

#endif
