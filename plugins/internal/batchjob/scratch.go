package batchjob

import (
	"fmt"
	"io"
	"os"
	"sync"
)

// newScratch is a temporary file that is gone when it is closed, or when the process ends.
func newScratch() (*os.File, error) {
	f, err := os.CreateTemp("", "racflow-batch-")
	if err != nil {
		return nil, fmt.Errorf("a file for a batch: %w", err)
	}
	_ = os.Remove(f.Name()) // where the system does not allow that, it stays until somebody tidies up
	return f, nil
}

// rewind goes back to the beginning of a file, and returns its size.
func rewind(f *os.File) (size int64, err error) {
	if size, err = f.Seek(0, io.SeekEnd); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	return size, err
}

// store keeps texts by name in a temporary file. Its methods may be called by several
// goroutines at once.
type store[T any] struct {
	mu   sync.Mutex
	file *os.File // nil: nothing was put yet
	end  int64
	at   map[string]*kept[T]
}

// kept is where a text lies, and what is known of it.
type kept[T any] struct {
	offset int64
	size   int
	about  T
}

// put keeps a text, in the place of one of the same name.
func (s *store[T]) put(name string, text []byte, about T) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		if s.file, err = newScratch(); err != nil {
			return err
		}
		s.at = map[string]*kept[T]{}
	}
	if _, err = s.file.WriteAt(text, s.end); err != nil {
		return fmt.Errorf("a file for a batch: %w", err)
	}
	s.at[name] = &kept[T]{s.end, len(text), about}
	s.end += int64(len(text))
	return nil
}

// get returns a text and what is known of it; nil: there is none of that name.
func (s *store[T]) get(name string) (text []byte, about *T, err error) {
	s.mu.Lock()
	k, file := s.at[name], s.file
	s.mu.Unlock()
	if k == nil {
		return nil, nil, nil
	}
	text = make([]byte, k.size)
	if _, err = file.ReadAt(text, k.offset); err != nil {
		return nil, nil, fmt.Errorf("a file for a batch: %w", err)
	}
	return text, &k.about, nil
}

func (s *store[T]) close() {
	if s.file != nil {
		_ = s.file.Close() // it is gone then
	}
}
