/* What c_program.c does. */
#ifndef C_PROGRAM_H_
#define C_PROGRAM_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Records with each kind of instrument. Returns 0, or the number of what went wrong. */
int RecordInC(void);
/* Asks for metrics again with another definition. Returns as RecordInC. */
int AskAgainInC(void);
/* Records, and reads the values back. Returns as RecordInC. */
int ReadInC(void);
/* Gauges and counters that follow functions, infos and enums. Returns as RecordInC. */
int FollowInC(void);
/* Counts in a scope. Returns as RecordInC. */
int ScopeInC(void);
/* Removes series. Returns as RecordInC. */
int RemoveInC(void);

#ifdef __cplusplus
}
#endif

#endif
