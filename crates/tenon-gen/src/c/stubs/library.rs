//! Names of C's library: those that the headers declare which stubs include (ISO/IEC 9899:2011 section 7), and those that
//! they declare of POSIX and more where a compiler is not told to keep to the standard, as gcc is not unless it is called
//! with `-std=c11` (glibc 2.36, with `_GNU_SOURCE`). A definition with one of them at file scope would declare it again.

/// Types of `stddef.h`, `stdint.h`, `stdio.h` and `stdlib.h`.
const TYPES: &str = "
    ptrdiff_t size_t max_align_t wchar_t intptr_t uintptr_t intmax_t uintmax_t
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
    int_least8_t int_least16_t int_least32_t int_least64_t
    uint_least8_t uint_least16_t uint_least32_t uint_least64_t
    int_fast8_t int_fast16_t int_fast32_t int_fast64_t
    uint_fast8_t uint_fast16_t uint_fast32_t uint_fast64_t
    FILE fpos_t div_t ldiv_t lldiv_t va_list
";

/// Functions of `stdio.h`, `stdlib.h` and `string.h`.
const FUNCTIONS: &str = "
    remove rename tmpfile tmpnam fclose fflush fopen freopen setbuf setvbuf
    fprintf fscanf printf scanf snprintf sprintf sscanf
    vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf
    fgetc fgets fputc fputs getc getchar gets putc putchar puts ungetc
    fread fwrite fgetpos fseek fsetpos ftell rewind clearerr feof ferror perror
    atof atoi atol atoll strtod strtof strtold strtol strtoll strtoul strtoull rand srand
    aligned_alloc calloc free malloc realloc
    abort atexit at_quick_exit exit getenv quick_exit system bsearch qsort
    abs labs llabs div ldiv lldiv mblen mbtowc wctomb mbstowcs wcstombs
    memcpy memmove strcpy strncpy strcat strncat memcmp strcmp strcoll strncmp strxfrm
    memchr strchr strcspn strpbrk strrchr strspn strstr strtok memset strerror strlen
";

/// Macros of those headers, which mean something else wherever they stand.
const MACROS: &str = "
    NULL offsetof bool true false BUFSIZ EOF FOPEN_MAX FILENAME_MAX L_tmpnam SEEK_CUR SEEK_END SEEK_SET TMP_MAX
    stderr stdin stdout EXIT_FAILURE EXIT_SUCCESS RAND_MAX MB_CUR_MAX
";

/// Types that the headers of glibc declare besides, and tags of structs.
const FURTHER_TYPES: &str = "
    blkcnt64_t blkcnt_t blksize_t caddr_t clock_t clockid_t comparison_fn_t cookie_close_function_t
    cookie_io_functions_t cookie_read_function_t cookie_seek_function_t cookie_write_function_t daddr_t dev_t
    drand48_data fd_mask fd_set fpos64_t fsblkcnt64_t fsblkcnt_t fsfilcnt64_t fsfilcnt_t fsid_t gid_t id_t ino64_t
    ino_t key_t locale_t loff_t mode_t nlink_t off64_t off_t pid_t pthread_attr_t pthread_barrier_t
    pthread_barrierattr_t pthread_cond_t pthread_condattr_t pthread_key_t pthread_mutex_t pthread_mutexattr_t
    pthread_once_t pthread_rwlock_t pthread_rwlockattr_t pthread_spinlock_t pthread_t quad_t random_data register_t
    sigset_t ssize_t suseconds_t time_t timer_t timespec timeval u_char u_int u_int16_t u_int32_t u_int64_t u_int8_t
    u_long u_quad_t u_short uid_t uint ulong useconds_t ushort
";

/// Functions that they declare besides.
const FURTHER_FUNCTIONS: &str = "
    a64l arc4random arc4random_buf arc4random_uniform asprintf basename bcmp bcopy bzero canonicalize_file_name
    clearenv clearerr_unlocked ctermid cuserid dprintf drand48 drand48_r ecvt ecvt_r erand48 erand48_r
    explicit_bzero fcloseall fcvt fcvt_r fdopen feof_unlocked ferror_unlocked fflush_unlocked ffs ffsl ffsll
    fgetc_unlocked fgetpos64 fgets_unlocked fileno fileno_unlocked flockfile fmemopen fopen64 fopencookie
    fputc_unlocked fputs_unlocked fread_unlocked freopen64 fseeko fseeko64 fsetpos64 ftello ftello64 ftrylockfile
    funlockfile fwrite_unlocked gcvt getc_unlocked getchar_unlocked getdelim getline getloadavg getpt getsubopt getw
    grantpt index initstate initstate_r jrand48 jrand48_r l64a lcong48 lcong48_r lrand48 lrand48_r memccpy memfrob
    memmem mempcpy memrchr mkdtemp mkostemp mkostemp64 mkostemps mkostemps64 mkstemp mkstemp64 mkstemps mkstemps64
    mktemp mrand48 mrand48_r nrand48 nrand48_r obstack_printf obstack_vprintf on_exit open_memstream pclose popen
    posix_memalign posix_openpt pselect ptsname ptsname_r putc_unlocked putchar_unlocked putenv putw qecvt qecvt_r
    qfcvt qfcvt_r qgcvt qsort_r rand_r random random_r rawmemchr reallocarray realpath renameat renameat2 rindex
    rpmatch secure_getenv seed48 seed48_r select setbuffer setenv setlinebuf setstate setstate_r sigabbrev_np
    sigdescr_np srand48 srand48_r srandom srandom_r stpcpy stpncpy strcasecmp strcasecmp_l strcasestr strchrnul
    strcoll_l strdup strerror_l strerror_r strerrordesc_np strerrorname_np strfromd strfromf strfromf128 strfromf32
    strfromf32x strfromf64 strfromf64x strfroml strfry strncasecmp strncasecmp_l strndup strnlen strsep strsignal
    strtod_l strtof128 strtof128_l strtof32 strtof32_l strtof32x strtof32x_l strtof64 strtof64_l strtof64x
    strtof64x_l strtof_l strtok_r strtol_l strtold_l strtoll_l strtoq strtoul_l strtoull_l strtouq strverscmp
    strxfrm_l tempnam tmpfile64 tmpnam_r unlockpt unsetenv valloc vasprintf vdprintf
";

/// Macros that they define besides, and the compiler.
const FURTHER_MACROS: &str = "
    alloca be16toh be32toh be64toh BIG_ENDIAN BYTE_ORDER FD_CLR FD_ISSET FD_SET FD_SETSIZE FD_ZERO htobe16 htobe32
    htobe64 htole16 htole32 htole64 L_ctermid L_cuserid le16toh le32toh le64toh linux LITTLE_ENDIAN NFDBITS P_tmpdir
    PDP_ENDIAN RENAME_EXCHANGE RENAME_NOREPLACE RENAME_WHITEOUT SEEK_DATA SEEK_HOLE strdupa strndupa unix WCONTINUED
    WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WSTOPPED WSTOPSIG WTERMSIG
    WUNTRACED
";

/// The prefixes and the suffixes of the names of macros of `stdint.h`.
const LIMITS: [&str; 6] = ["INT", "UINT", "PTRDIFF_", "SIG_ATOMIC_", "SIZE_", "W"];
const LIMIT_ENDS: [&str; 4] = ["_MAX", "_MIN", "_C", "_WIDTH"];

/// Returns whether a name at file scope is one of the library's.
pub fn has(name: &str) -> bool {
    let declared = [TYPES, FUNCTIONS, FURTHER_TYPES, FURTHER_FUNCTIONS];
    declared.iter().any(|names| is_among(names, name)) || defines(name)
}

/// Returns whether a name is a macro of the library's, wherever it stands.
pub fn defines(name: &str) -> bool {
    let is_limit = LIMITS.iter().any(|begin| name.starts_with(begin))
        && LIMIT_ENDS.iter().any(|end| name.ends_with(end));
    is_among(MACROS, name) || is_among(FURTHER_MACROS, name) || is_limit
}

fn is_among(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}
