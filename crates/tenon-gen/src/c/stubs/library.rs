//! Names of C's library: those that the headers declare which stubs include (ISO/IEC 9899:2011 section 7). A
//! definition with one of them at file scope would declare it again.

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

/// The prefixes and the suffixes of the names of macros of `stdint.h`.
const LIMITS: [&str; 6] = ["INT", "UINT", "PTRDIFF_", "SIG_ATOMIC_", "SIZE_", "W"];
const LIMIT_ENDS: [&str; 4] = ["_MAX", "_MIN", "_C", "_WIDTH"];

/// Returns whether a name at file scope is one of the library's.
pub fn has(name: &str) -> bool {
    [TYPES, FUNCTIONS].iter().any(|names| is_among(names, name)) || defines(name)
}

/// Returns whether a name is a macro of the library's, wherever it stands.
pub fn defines(name: &str) -> bool {
    let is_limit = LIMITS.iter().any(|begin| name.starts_with(begin))
        && LIMIT_ENDS.iter().any(|end| name.ends_with(end));
    is_among(MACROS, name) || is_limit
}

fn is_among(names: &str, name: &str) -> bool {
    names.split_ascii_whitespace().any(|known| known == name)
}
