package guard

import (
	"net/http"
	"time"
)

// writer notes what becomes of an answer, and gives the client a time to take each piece
// of it.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	status  int // 0: not written yet
	bytes   int64
}

func newWriter(w http.ResponseWriter, stall time.Duration) *writer {
	return &writer{ResponseWriter: w, control: http.NewResponseController(w), stall: stall}
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *writer) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
		w.patience()
	}
	w.ResponseWriter.WriteHeader(status)
}

// patience begins the time that the client has.
func (w *writer) patience() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.stall)) // recorders of tests have none
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	w.status = w.code()
	w.patience()
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Flush implements http.Flusher, which some handlers look for.
func (w *writer) Flush() {
	w.status = w.code()
	w.patience()
	_ = w.control.Flush()
}
