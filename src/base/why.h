/*
 * Why a function of the caller's failed. Such a function can only return "it failed"; before it does, it may say why with
 * fettle_callback_failed(). The library asks right after it has returned, in the same thread.
 */
#ifndef BASE_WHY_H
#define BASE_WHY_H

void why_forget(void); /* before the function is called */
/* ": REASON", to be added to a message; "" if it gave none. Valid until the next why_forget() of this thread. */
const char *why_text(void);

#endif
