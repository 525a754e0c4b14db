package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/racflow/racflow/engine/source"
)

// Fields are columns of an item's row, which JSON has as an object, in their order.
type Fields []source.Field

// MarshalJSON implements json.Marshaler. Whether characters of HTML are escaped is left to
// the encoder that calls it.
func (f Fields) MarshalJSON() ([]byte, error) {
	o := newObject()
	for _, one := range f {
		if err := o.add(one.Name, one.Value); err != nil {
			return nil, err
		}
	}
	return o.bytes(), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *Fields) UnmarshalJSON(b []byte) error {
	*f = nil
	dec := json.NewDecoder(bytes.NewReader(b))
	switch start, err := dec.Token(); {
	case err != nil || start == nil: // null
		return err
	case start != json.Delim('{'):
		return fmt.Errorf("fields are an object, and not %s", b)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return err
		}
		one := source.Field{Value: raw}
		one.Name, _ = name.(string) // as keys of an object are
		if raw[0] != '{' && raw[0] != '[' {
			value := json.NewDecoder(bytes.NewReader(raw))
			value.UseNumber()
			if err := value.Decode(&one.Value); err != nil {
				return err
			}
		}
		*f = append(*f, one)
	}
	return nil
}

// object is a JSON object that is being written.
type object struct {
	buffer bytes.Buffer
	enc    *json.Encoder
}

func newObject() *object {
	o := &object{}
	o.enc = json.NewEncoder(&o.buffer)
	o.enc.SetEscapeHTML(false)
	return o
}

// begin empties the object.
func (o *object) begin() { o.buffer.Reset() }

func (o *object) add(name string, value any) error {
	separator := byte(',')
	if o.buffer.Len() == 0 {
		separator = '{'
	}
	o.buffer.WriteByte(separator)
	if err := o.enc.Encode(name); err != nil {
		return err
	}
	o.buffer.Truncate(o.buffer.Len() - 1) // the encoder ends a line
	o.buffer.WriteByte(':')
	if err := o.enc.Encode(value); err != nil {
		return err
	}
	o.buffer.Truncate(o.buffer.Len() - 1)
	return nil
}

// bytes ends the object, and returns it.
func (o *object) bytes() []byte {
	if o.buffer.Len() == 0 {
		o.buffer.WriteByte('{')
	}
	o.buffer.WriteByte('}')
	return o.buffer.Bytes()
}

// plain is a value of a field in formats without nesting: what is nested as its JSON, on one
// line.
func plain(value any) any {
	switch v := value.(type) {
	case json.Number:
		return v.String()
	case json.RawMessage:
		var line bytes.Buffer
		if json.Compact(&line, v) != nil {
			return string(v)
		}
		return line.String()
	case string:
		return strings.ToValidUTF8(v, "\uFFFD")
	}
	return value
}
