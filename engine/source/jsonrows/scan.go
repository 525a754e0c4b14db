package jsonrows

import "github.com/racflow/racflow/engine/source/lines"

// token reads the next byte that is no white space.
func (s *Stream) token() (byte, error) {
	for {
		c, err := s.in.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case c == '\n':
			s.line++
		case c != ' ' && c != '\t' && c != '\r':
			return c, nil
		}
	}
}

// back makes a token the next one again.
func (s *Stream) back(byte) error { return s.in.UnreadByte() }

// value reads the rest of the value that begins with a byte, and returns it whole where it is
// kept, to be used before the next call; lines.ErrTooLong is the error of one above lines.Max,
// which is read to its end. Whether it is valid JSON is not looked at: quotes and brackets
// tell where it ends.
func (s *Stream) value(first byte, keep bool) (raw []byte, err error) {
	s.raw = s.raw[:0]
	depth, quoted, escaped, tooLong := 0, false, false, false
	for c := first; ; {
		if keep && !tooLong {
			if tooLong = len(s.raw) >= lines.Max; !tooLong {
				s.raw = append(s.raw, c)
			}
		}
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if c == '\n' {
			s.line++
		}
		if depth <= 0 && !quoted && (first == '{' || first == '[' || first == '"') {
			break
		}
		if c, err = s.in.ReadByte(); err != nil {
			return nil, err
		}
		if depth == 0 && !quoted && (c == ',' || c == ']' || c == '}') { // the end of a number or a word
			if err := s.in.UnreadByte(); err != nil {
				return nil, err
			}
			break
		}
	}
	if tooLong {
		return nil, lines.ErrTooLong
	}
	return s.raw, nil
}
