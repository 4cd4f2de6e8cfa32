/* What c_program.c does. */
#ifndef C_PROGRAM_H_
#define C_PROGRAM_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Records with each kind of instrument. Returns 0, or the number of what went wrong. */
int RecordInC(void);

#ifdef __cplusplus
}
#endif

#endif
