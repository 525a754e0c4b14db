package document

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"

	"golang.org/x/net/html/charset"
)

// This file turns mail messages (RFC 5322 with MIME, files named .eml) into text: subject, sender, recipients and date
// as lines, then the body, then the names of the attachments. Of alternatives it uses the plain text. If the readable
// part of the HTML has twice as many words, it uses that part. Quoted replies stay. It decodes encoded headers (RFC
// 2047), quoted-printable, base64 and every character set that the WHATWG names.
//
// It opens no attachments except forwarded messages. An encrypted body yields only the names of its parts.

const (
	maxNesting = 20   // depth of nested parts
	maxParts   = 1000 // of a message
)

// Mail returns the text of a message and its subject, and counts attachments. The text is at most as long as raw. Two
// things can make it longer: the names of the headers, and character sets with fewer bytes than UTF-8.
func Mail(raw []byte, unread Unread) (text, subject string, err error) {
	r := &reader{unread: unread}
	m, err := mail.ReadMessage(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\uFEFF"))))
	if err == nil {
		err = r.message(m, 0)
	}
	if err != nil {
		return "", "", fmt.Errorf("its mail cannot be read: %w%s", err, advice)
	}
	return strings.ToValidUTF8(r.out.String(), "\uFFFD"), decodePart(m.Header.Get("Subject")), nil
}

type reader struct {
	out    strings.Builder
	parts  int
	body   bool // a part with text has come
	unread Unread
}

func (r *reader) message(m *mail.Message, depth int) error {
	for _, name := range []string{"Subject", "From", "To", "Cc", "Date"} {
		if value := decodePart(m.Header.Get(name)); value != "" {
			r.out.WriteString(name + ": " + value + "\n")
		}
	}
	body, err := r.part(textproto.MIMEHeader(m.Header), m.Body, depth)
	if err != nil {
		return err
	}
	if text := strings.Trim(body.text, "\n"); text != "" {
		r.out.WriteString("\n" + text + "\n")
	}
	if len(body.names) > 0 {
		r.unread["attachment"] += len(body.names)
		r.out.WriteString("\nAttachments: " + strings.Join(body.names, ", ") + "\n")
	}
	return nil
}

// words decodes headers in every character set.
var words = mime.WordDecoder{CharsetReader: func(name string, in io.Reader) (io.Reader, error) { return charset.NewReaderLabel(name, in) }}

// decodePart decodes a header and puts it on one line.
func decodePart(value string) string {
	if decoded, err := words.DecodeHeader(value); err == nil {
		value = decoded
	}
	return OneLine(strings.ToValidUTF8(value, "\uFFFD"))
}

// content is the text of a part, and the names of attachments in it.
type content struct {
	text  string
	names []string
}

// part reads a part of a message.
func (r *reader) part(header textproto.MIMEHeader, in io.Reader, depth int) (c content, err error) {
	if r.parts++; r.parts > maxParts || depth > maxNesting {
		return c, errors.New("it has too many parts, or too many in each other")
	}
	kind, values, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil && kind == "" {
		kind, values = "text/plain", nil
	}
	name, how := named(header, values)
	switch {
	case kind != "message/rfc822" && (how == "attachment" || name != "" && how != "inline" && r.body):
		return content{names: []string{cmp.Or(name, "without a name")}}, nil
	case strings.HasPrefix(kind, "multipart/") && values["boundary"] != "":
		return r.parted(kind, multipart.NewReader(in, values["boundary"]), depth)
	case kind == "message/rfc822":
		return r.forwarded(unpacked(header, in), depth)
	case kind != "text/plain" && kind != "text/html" && kind != "text/markdown": // a picture, a calendar, a card
		return content{names: []string{cmp.Or(name, kind)}}, nil
	}
	raw, err := io.ReadAll(unpacked(header, in))
	if err != nil && len(raw) == 0 {
		return c, err
	}
	if c.text, err = decoded(raw, values["charset"], kind == "text/html"), nil; kind == "text/html" {
		c.text, _, err = HTML(c.text, false, r.unread)
	}
	r.body = r.body || strings.TrimSpace(c.text) != ""
	return c, err
}

// parted reads the parts of a multipart body: the best of alternatives, otherwise all parts in their order.
func (r *reader) parted(kind string, in *multipart.Reader, depth int) (all content, err error) {
	var texts []string
	for {
		p, err := in.NextRawPart()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			if len(texts) > 0 {
				break // interrupted: the parts before count
			}
			return all, err
		}
		r.body = r.body && kind != "multipart/alternative" // an alternative may have a name
		c, err := r.part(p.Header, p, depth+1)
		if err != nil {
			return all, err
		}
		all.names = append(all.names, c.names...)
		if text := strings.Trim(c.text, "\n"); strings.TrimSpace(text) != "" {
			texts = append(texts, text)
		}
	}
	if n := len(texts); kind == "multipart/alternative" && n > 1 { // the first is plain, and perhaps a stub
		if 2*len(strings.Fields(texts[0])) < len(strings.Fields(texts[n-1])) {
			texts[0] = texts[n-1]
		}
		texts = texts[:1]
	}
	all.text = strings.Join(texts, "\n\n")
	return all, nil
}

// forwarded reads a message in a message.
func (r *reader) forwarded(in io.Reader, depth int) (c content, err error) {
	m, err := mail.ReadMessage(in)
	if err != nil {
		return content{names: []string{"message/rfc822"}}, nil //nolint:nilerr // like any other attachment
	}
	inner := &reader{parts: r.parts, unread: r.unread}
	err = inner.message(m, depth+1)
	r.parts = inner.parts
	return content{text: "Forwarded message:\n" + inner.out.String()}, err
}

// named returns the name of a part, and its disposition.
func named(header textproto.MIMEHeader, values map[string]string) (name, how string) {
	how, more, _ := mime.ParseMediaType(header.Get("Content-Disposition"))
	if name = decodePart(more["filename"]); name == "" {
		name = decodePart(values["name"])
	}
	return name, how
}

// unpacked decodes the transfer encoding of a body.
func unpacked(header textproto.MIMEHeader, in io.Reader) io.Reader {
	switch strings.ToLower(strings.TrimSpace(header.Get("Content-Transfer-Encoding"))) {
	case "quoted-printable":
		return quotedprintable.NewReader(in)
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, &spaceless{in})
	}
	return in
}

// spaceless drops bytes that are not base64, since some programs write blanks into lines.
type spaceless struct{ in io.Reader }

func (s *spaceless) Read(p []byte) (int, error) {
	for {
		n, err := s.in.Read(p)
		kept := 0
		for _, b := range p[:n] {
			if b > ' ' && b < 0x7f {
				p[kept] = b
				kept++
			}
		}
		if kept > 0 || err != nil || n == 0 {
			return kept, err
		}
	}
}

// decoded decodes a text from a character set. If name is empty or unknown, it detects the character set.
func decoded(raw []byte, name string, page bool) string {
	text := string(raw)
	if e, known := charset.Lookup(name); e != nil && known != "utf-8" {
		text, _ = e.NewDecoder().String(text) // what cannot be decoded becomes U+FFFD
	} else if read, err := decode(raw, page); err == nil {
		text = read
	}
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\r\n", "\n")
}
