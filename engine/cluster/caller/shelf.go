package caller

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/racflow/racflow/engine/cluster/bus"
	"github.com/racflow/racflow/engine/private"
)

// shelf keeps results in a file until they have been taken: they are there by position, whatever the
// order in which they came. The file has no name where that is possible.
type shelf struct {
	file *os.File

	mu    sync.Mutex
	size  int64
	spans map[int]span  // by number of the batch
	added chan struct{} // is closed and made anew when one was added
}

type span struct {
	from   int64
	length int
	worker string
}

func newShelf(folder string) (*shelf, error) {
	err := private.MakeFolder(folder)
	var file *os.File
	if err == nil {
		file, err = os.CreateTemp(folder, "results-*.tmp")
	}
	if err != nil {
		return nil, fmt.Errorf("a file for results that come out of order: %w", err)
	}
	_ = os.Remove(file.Name()) // where that is refused, close does it
	return &shelf{file: file, spans: map[int]span{}, added: make(chan struct{})}, nil
}

// add keeps a result.
func (s *shelf) add(r bus.Result) error {
	if _, err := s.file.WriteAt(r.Data, s.size); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans[r.Seq] = span{s.size, len(r.Data), r.Worker}
	s.size += int64(len(r.Data))
	close(s.added)
	s.added = make(chan struct{})
	return nil
}

// get waits for the result of a batch.
func (s *shelf) get(ctx context.Context, seq int) (data []byte, worker string, err error) {
	for {
		s.mu.Lock()
		at, ok := s.spans[seq]
		added := s.added
		s.mu.Unlock()
		if ok {
			data = make([]byte, at.length)
			_, err = s.file.ReadAt(data, at.from)
			return data, at.worker, err
		}
		select {
		case <-added:
		case <-ctx.Done():
			return nil, "", context.Cause(ctx)
		}
	}
}

func (s *shelf) close() error {
	err := s.file.Close()
	_ = os.Remove(s.file.Name()) // newShelf may have done so
	return err
}
