package document

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// readerVariable is set for a process that reads a PDF: the most bytes that its
// text may have, and the nanoseconds that it may take.
const readerVariable = "RACFLOW_READ_PDF"

// pdfMemory is how many bytes of memory a PDF may take, where the system can
// limit that.
const pdfMemory = 1 << 30

var errPDFBroken = fmt.Errorf("its PDF cannot be read: it takes more than %d MB of memory, or breaks the reader", pdfMemory>>20)

// pdfResult is the reply of the process that reads a PDF.
type pdfResult struct{ Text, Title, Error string }

// A process that fromPDF started reads and ends, before any main function runs: so
// every program that reads documents can be that process, tests too.
func init() {
	var most int64
	var within time.Duration
	if _, err := fmt.Sscanf(os.Getenv(readerVariable), "%d %d", &most, &within); err == nil {
		os.Exit(servePDF(os.Stdin, os.Stdout, most, within))
	}
}

// servePDF reads a PDF and writes a pdfResult. It ends the process if that takes too
// long, since the parent may be gone.
func servePDF(in io.Reader, out io.Writer, most int64, within time.Duration) (code int) {
	limitMemory(pdfMemory)
	time.AfterFunc(within, func() { os.Exit(1) })
	raw, err := io.ReadAll(in)
	if err != nil {
		return 1
	}
	var r pdfResult
	if r.Text, r.Title, err = readPDF(raw, most, time.Now().Add(within)); err != nil {
		r = pdfResult{Error: err.Error()}
	}
	if err := json.NewEncoder(out).Encode(r); err != nil {
		return 1
	}
	return 0
}

// fromPDF calls readPDF in a process of its own, with no more of the environment than
// it needs.
func fromPDF(raw []byte, most int64, within time.Duration) (text, title string, err error) {
	program, err := os.Executable()
	if err != nil {
		return "", "", fmt.Errorf("find the running program, to read a PDF: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	reader := exec.CommandContext(ctx, program)
	reader.Env = []string{fmt.Sprintf("%s=%d %d", readerVariable, most, within), "GOTRACEBACK=none"}
	reader.Stdin = bytes.NewReader(raw)
	out, err := reader.Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", "", errPDFLong
	case errors.As(err, &exit):
		return "", "", errPDFBroken
	case err != nil:
		return "", "", fmt.Errorf("read a PDF: %w", err)
	}
	var r pdfResult
	if err := json.Unmarshal(out, &r); err != nil {
		return "", "", errPDFBroken
	}
	if r.Error != "" {
		return "", "", errors.New(r.Error)
	}
	return r.Text, r.Title, nil
}
