package batchjob

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// An intent says that a job is about to be sent, in a file by the digest of its requests. It
// holds the job's mark, which is the digest and a text of its own: the same requests may have
// been sent before, and were to be sent again. Where there is one before anything was sent,
// the process that wrote it was killed, or never heard whether the job was made.

// intend returns the mark of a job, and whether the job may have been sent already. Without a
// folder nobody can tell.
func (j *Jobs) intend(digest string) (mark string, before bool, err error) {
	mark = digest + rand.Text()[:10]
	if j.dir == "" {
		return mark, false, nil
	}
	file := filepath.Join(j.dir, digest)
	if old, err := os.ReadFile(file); err == nil && len(old) == len(mark) {
		return string(old), true, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return "", false, err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return "", false, err
	}
	_, err = f.WriteString(mark)
	if err == nil {
		err = f.Sync()
	}
	return mark, false, errors.Join(err, f.Close())
}

// forget forgets an intent: the handle of the job is kept, or what it said was read.
func (j *Jobs) forget(digest string) {
	if j.dir != "" && digest != "" {
		_ = os.Remove(filepath.Join(j.dir, digest)) // one that stays is one more look for a job
	}
}
