package document

import (
	"cmp"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// This file parses files in a separate process, since a few hostile bytes can make a parser ask for all
// memory or never end. The process is this program, started again. It has a time limit, on Linux a memory
// limit (1 GB), a nearly empty environment, and a folder for temporary files that is removed with the
// process. It reads one file after another until a Folder is closed. A file that breaks its parser fails
// without affecting the others.

// maxTime limits reading one file. maxStart limits compiling PDFium.
const maxTime, maxStart = 30 * time.Second, 5 * time.Minute

// memory is how many bytes a reader may allocate, if the system can limit that.
const memory = 1 << 30

// variable is set in the environment of a reading process.
const variable = "RACFLOW_READ_DOCUMENT"

// An apartReader returns the text of a file's content, about most bytes at most, and its title (empty: none).
// It should return before stop. It may panic, ask for any amount of memory, or never end.
type apartReader func(raw []byte, most int64, stop time.Time, unread Unread) (text, title string, err error)

// tooLong is the error of a file that has too much text or takes too long. kind is the kind of the file, such
// as "PDF".
func tooLong(kind string) error {
	return fmt.Errorf("its %s is too long, or takes longer than %v; split it, raise max_bytes, or leave it out with exclude", kind, maxTime)
}

func broken(kind string) error {
	return fmt.Errorf("its %s cannot be read: it takes more than %d MB of memory, or breaks the reader; leave it out with exclude", kind, memory>>20)
}

// request asks for the text of a file.
type request struct {
	Kind   string
	Raw    []byte
	Most   int64
	Within time.Duration
}

// reply is the answer of the reading process.
type reply struct {
	Text, Title, Error string
	Unread             Unread // a kind of pages ends with their numbers, as in page of pictures (3, 5)
}

// process is a reading process.
type process struct {
	*exec.Cmd
	folder string // of temporary files
	to     *gob.Encoder
	from   *gob.Decoder
	pdf    bool // PDFium is ready
}

// idle is a process that waits for the next file; nil: none.
var idle atomic.Pointer[process]

var errEnded = errors.New("the reading process has ended")

// readApart reads a file in another process, with the reader for its kind.
func readApart(ctx context.Context, kind string, raw []byte, most int64, within time.Duration) (r reply, err error) {
	p, err := idle.Swap(nil), errEnded
	if p != nil {
		r, err = p.read(ctx, request{kind, raw, most, within})
	}
	if errors.Is(err, errEnded) { // or earlier files have left too little memory
		if p, err = start(); err == nil {
			r, err = p.read(ctx, request{kind, raw, most, within})
		}
	}
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case errors.Is(err, errEnded):
		return r, broken(kind)
	case err != nil:
		return r, err
	}
	idle.Swap(p).end()
	if r.Error != "" {
		err = errors.New(r.Error)
	}
	return r, err
}

// start starts a reading process, and passes it the cache folder for PDFium's code.
func start() (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the running program, to read documents: %w", err)
	}
	folder, err := os.MkdirTemp("", "racflow-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for temporary files, to read documents: %w", err)
	}
	p := &process{Cmd: exec.CommandContext(context.Background(), program), folder: folder}
	p.Env = []string{variable + "=1", "GOTRACEBACK=none", "TMPDIR=" + folder, "TMP=" + folder, "HOME=" + os.Getenv("HOME"), "XDG_CACHE_HOME=" + os.Getenv("XDG_CACHE_HOME")}
	stdin, errIn := p.StdinPipe()
	stdout, errOut := p.StdoutPipe()
	if err = cmp.Or(errIn, errOut, p.Start()); err != nil {
		return nil, errors.Join(fmt.Errorf("start a process that reads documents: %w", err), os.RemoveAll(folder))
	}
	p.to, p.from = gob.NewEncoder(stdin), gob.NewDecoder(stdout)
	return p, nil
}

// read reads a file, once PDFium is ready if the file needs it. After an error the process has ended.
func (p *process) read(ctx context.Context, q request) (r reply, err error) {
	if q.Kind == "PDF" && !p.pdf {
		p.pdf = true
		if r, err = p.read(ctx, request{Kind: startPDF, Within: maxStart}); err != nil || r.Error != "" {
			return r, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, q.Within)
	defer cancel()
	defer context.AfterFunc(limited, func() { _ = p.Process.Kill() })()
	if err = cmp.Or(p.to.Encode(q), p.from.Decode(&r)); err == nil {
		return r, nil
	}
	p.end()
	if limited.Err() != nil {
		return r, tooLong(q.Kind)
	}
	return r, errEnded
}

// end ends a process, unless it is nil.
func (p *process) end() {
	if p != nil {
		_ = p.Process.Kill()
		_ = p.Wait() // the process was killed
		os.RemoveAll(p.folder)
	}
}

// startPDF is the kind of a request before the first PDF.
const startPDF = "PDFium"

// apartReaders has the readers that a hostile file can break, by kind of file.
var apartReaders = map[string]func(request) (reply, error){startPDF: withPDFium, "PDF": readPDF, "DOCX": plainly(DOCX), "PPTX": plainly(PPTX), "XLSX": plainly(XLSX), "EPUB": plainly(EPUB)}

// plainly makes an apartReader answer requests.
func plainly(read apartReader) func(request) (reply, error) {
	return func(q request) (r reply, err error) {
		r.Unread = Unread{}
		r.Text, r.Title, err = read(q.Raw, q.Most, time.Now().Add(q.Within), r.Unread)
		return r, err
	}
}

// init reads files and then exits, if start started this process. It runs before any main function, so every
// program that reads documents can be that process, including tests.
func init() {
	if os.Getenv(variable) == "" {
		return
	}
	limit(memory)
	debug.SetMemoryLimit(memory * 3 / 4)
	from, to := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	var err error
	for err == nil {
		var q request
		if err = from.Decode(&q); err == nil {
			err = to.Encode(readSafely(q))
		}
	}
	os.RemoveAll(os.Getenv("TMPDIR")) // the process that should do that is gone
	os.Exit(0)
}

func readSafely(q request) (r reply) {
	defer func() {
		if why := recover(); why != nil {
			r = reply{Error: fmt.Sprintf("its %s cannot be read: %v; leave it out with exclude", q.Kind, why)}
		}
	}()
	r, err := apartReaders[q.Kind](q)
	if err != nil {
		r = reply{Error: err.Error()}
	}
	return r
}
