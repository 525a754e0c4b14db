package host

import (
	"slices"
	"strings"
	"testing"
)

// What Go writes as it ends is cut down to where the program's own code was.
func TestTrace(t *testing.T) {
	for name, c := range map[string]struct {
		lines string
		what  string
		stack []string
	}{
		"a panic": {`working
panic: out of cheese

goroutine 14 [running]:
main.aside(...)
	/src/main.go:146
created by main.make in goroutine 13
	/src/main.go:105 +0x5cc

goroutine 1 [chan receive]:
main.main()
	/src/main.go:9 +0x1
`, "panic: out of cheese at /src/main.go:146", []string{"panic: out of cheese", "goroutine 14 [running]:", "main.aside(...)", "\t/src/main.go:146", "created by main.make in goroutine 13", "\t/src/main.go:105 +0x5cc"}},
		"nil": {`panic: runtime error: invalid memory address or nil pointer dereference
[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x48]
goroutine 7 [running]:
panic({0x1, 0x2})
	/go/src/runtime/panic.go:783 +0x132
main.deep(0x0)
	/src/main.go:12 +0x3
`, "panic: runtime error: invalid memory address or nil pointer dereference at /src/main.go:12", []string{
			"panic: runtime error: invalid memory address or nil pointer dereference", "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x48]", "goroutine 7 [running]:", "main.deep(0x0)", "\t/src/main.go:12 +0x3",
		}},
		"a stack that overflows": {`runtime: goroutine stack exceeds 1000000000-byte limit
fatal error: stack overflow

runtime stack:
runtime.throw({0x1, 0x2})
	/go/src/runtime/panic.go:1094 +0x48
runtime.newstack()
	/go/src/runtime/stack.go:1159 +0x5bd

goroutine 30 gp=0x1 m=3 mp=0x4 [running]:
main.exhaust(0x1)
	/src/main.go:109 +0x2
main.exhaust(0x2)
	/src/main.go:109 +0x2
goroutine 31 [select]:
main.other()
	/src/main.go:1 +0x1
`, "fatal error: stack overflow at /src/main.go:109", []string{
			"fatal error: stack overflow", "goroutine 30 gp=0x1 m=3 mp=0x4 [running]:", "main.exhaust(0x1)", "\t/src/main.go:109 +0x2", "main.exhaust(0x2)", "\t/src/main.go:109 +0x2",
		}},
		"an abort": {`SIGABRT: abort
PC=0x499da3 m=0 sigcode=0

goroutine 0 gp=0x2 m=0 [idle]:
runtime.futex(0x1)
	/go/src/runtime/sys_linux_amd64.s:557 +0x23

goroutine 12 [syscall]:
syscall.Kill(0x1)
	/go/src/syscall/zsyscall.go:5 +0x1
main.abort()
	/src/main.go:3 +0x4
goroutine 13 [select]:
`, "SIGABRT: abort at /go/src/syscall/zsyscall.go:5", []string{
			"SIGABRT: abort", "PC=0x499da3 m=0 sigcode=0", "goroutine 12 [syscall]:", "syscall.Kill(0x1)", "\t/go/src/syscall/zsyscall.go:5 +0x1", "main.abort()", "\t/src/main.go:3 +0x4",
		}},
		"no trace": {"a\nb\n", "", nil},
		"a long one": {"panic: x\n\ngoroutine 1 [running]:\n" + strings.Repeat("main.f()\n\t/src/main.go:7 +0x1\n", 50), "panic: x at /src/main.go:7",
			append([]string{"panic: x", "goroutine 1 [running]:"}, slices.Repeat([]string{"main.f()", "\t/src/main.go:7 +0x1"}, 5)...)},
	} {
		t.Run(name, func(t *testing.T) {
			var got trace
			for line := range strings.Lines(c.lines) {
				if line = strings.TrimRight(line, "\n"); line != "" { // as output does
					got.add(line)
				}
			}
			if got.what() != c.what || !slices.Equal(got.stack, c.stack) {
				t.Errorf("%q\n%s", got.what(), strings.Join(got.stack, "\n"))
			}
		})
	}
}
