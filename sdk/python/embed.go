package python

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Version is the version of the package. Raise it with each change that plugins notice.
const Version = "0.1.0"

// Requires lists the packages that the package needs, in pip's notation.
var Requires = []string{"grpcio>=1.60", "protobuf>=4.23", "cryptography>=42"}

// files are the package as it is installed. Its modules but __init__ have names that begin with _,
// which only patterns of files take.
//
//go:embed racflow_plugin/*.py racflow_plugin/py.typed racflow_plugin/stage.binpb
var files embed.FS

//go:embed README.md
var readme []byte

// Wheel returns the package as a wheel for Python 3.10 and later, with the file name that it must
// have. The same binary always returns the same bytes.
func Wheel() (name string, content []byte, err error) {
	info := "racflow_plugin-" + Version + ".dist-info/"
	w := wheel{record: info + "RECORD"}
	w.zip = zip.NewWriter(&w.buffer)
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		body, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return w.add(path.Clean(name), body)
	})
	if err == nil {
		err = w.add(info+"METADATA", metadata())
	}
	if err == nil {
		err = w.add(info+"WHEEL", []byte("Wheel-Version: 1.0\nGenerator: racflow\nRoot-Is-Purelib: true\nTag: py3-none-any\n"))
	}
	if err == nil {
		err = w.close()
	}
	if err != nil {
		return "", nil, fmt.Errorf("make the wheel of racflow-plugin: %w", err)
	}
	return "racflow_plugin-" + Version + "-py3-none-any.whl", w.buffer.Bytes(), nil
}

func metadata() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "Metadata-Version: 2.4\nName: racflow-plugin\nVersion: %s\nSummary: Write stages of racflow pipelines in Python\n", Version)
	b.WriteString("License-Expression: Apache-2.0\nRequires-Python: >=3.10\nDescription-Content-Type: text/markdown\n")
	for _, r := range Requires {
		fmt.Fprintf(&b, "Requires-Dist: %s\n", r)
	}
	b.WriteString("Provides-Extra: numpy\nRequires-Dist: numpy; extra == \"numpy\"\n\n")
	b.Write(readme)
	return []byte(b.String())
}

// wheel is a zip archive with the list of its files, as in "Binary distribution format" of the Python
// packaging specifications.
type wheel struct {
	buffer bytes.Buffer
	zip    *zip.Writer
	lines  strings.Builder
	record string
}

func (w *wheel) add(name string, body []byte) error {
	sum := sha256.Sum256(body)
	fmt.Fprintf(&w.lines, "%s,sha256=%s,%d\n", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(body))
	return w.write(name, body)
}

// write writes a file with the zero time, the first time that an archive can express.
func (w *wheel) write(name string, body []byte) error {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate}
	header.SetMode(0o644)
	file, err := w.zip.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	return err
}

func (w *wheel) close() error {
	fmt.Fprintf(&w.lines, "%s,,\n", w.record)
	if err := w.write(w.record, []byte(w.lines.String())); err != nil {
		return err
	}
	return w.zip.Close()
}
