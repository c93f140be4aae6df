# Makes a manual page of tenon.h: what a comment says is text, and what is declared an example.
# awk -v version=0.1.0 -f manual.awk tenon.h >tenon.3

function plain(text) {
    gsub(/\\/, "\\e", text)
    if (text ~ /^[.']/) text = "\\&" text
    return text
}

# Ends what was being written.
function switch_to(kind) {
    if (writes == kind) return
    if (writes == "code") print ".EE"
    if (kind == "code") print ".PP\n.EX"
    if (kind == "text") print ".PP"
    writes = kind
}

function say(text) {
    sub(/ *\*\/ *$/, "", text)
    sub(/^ *\*? ?/, "", text)
    if (text == "") {
        switch_to("")
        return
    }
    switch_to("text")
    # Lines that are set in columns stay lines.
    if (text ~ /^  /) print ".br"
    print plain(text)
}

BEGIN {
    print ".TH TENON 3 \"\" \"tenon " version "\" \"Library Functions Manual\""
    print ".SH NAME"
    print "tenon \\- remote procedure calls from C: ONC RPC, the lean protocol, shared memory"
    print ".SH SYNOPSIS"
    print ".EX\n#include <tenon.h>\n.sp\ncc ... $(pkg-config \\-\\-cflags \\-\\-libs tenon)\n.EE"
    print ".SH DESCRIPTION"
}

# What only the compiler looks at.
/^#if(n?def|.*__cplusplus)/ || /^#endif/ || /^#define TENON_H/ || /^extern "C"/ || /^#include/ { next }
/^}$/ { next }

# A section: "/* -- clients: for programs -- */".
/^\/\* -- .* -- \*\/$/ {
    switch_to("")
    title = $0
    gsub(/^\/\* -- | -- \*\/$/, "", title)
    print ".SH " toupper(plain(title))
    next
}

# A comment that begins a line is text; others stay with what they explain.
/^\/\*/ {
    switch_to("")
    text = $0
    sub(/^\/\*/, "", text)
    say(text)
    in_comment = $0 !~ /\*\//
    next
}
in_comment {
    in_comment = $0 !~ /\*\//
    say($0)
    next
}

/^$/ { switch_to(""); next }

{
    switch_to("code")
    print plain($0)
}

END {
    switch_to("")
    print ".SH SEE ALSO\n.BR tenon (1),\n.BR rpcgen (1),\n.BR rpc (3t)"
}
