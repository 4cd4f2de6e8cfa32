/* Between a program under test and the library that makes calls fail in it (inject.c), which is preloaded.
 *
 * A call fails only inside a scope: the program's own calls always succeed. The program opens a scope around each use of the
 * library under test. Without the preloaded library there are no scopes. */
#ifndef PERSIA_FAULTS_INJECT_H_
#define PERSIA_FAULTS_INJECT_H_

#ifdef __cplusplus
extern "C" {
#endif

/* Opens (1) or closes (-1) a scope of the calling thread. */
__attribute__((weak, visibility("default"))) void persia_faults_scope(int change);

#ifdef __cplusplus
}
#endif

#endif
