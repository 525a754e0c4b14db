package result

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Field is a column of a row.
type Field struct {
	Name  string
	Value any // string, json.Number, bool, nil, or json.RawMessage if nested
}

// Fields are the columns of an item's row, in order; JSON shows them as an object.
type Fields []Field

// MarshalJSON implements json.Marshaler. The calling encoder decides whether to escape HTML.
func (f Fields) MarshalJSON() ([]byte, error) {
	object := []byte{'{'}
	for i, one := range f {
		if i > 0 {
			object = append(object, ',')
		}
		name, err := encode(one.Name)
		if err != nil {
			return nil, err
		}
		value, err := encode(one.Value)
		if err != nil {
			return nil, err
		}
		object = append(append(append(object, name...), ':'), value...)
	}
	return append(object, '}'), nil
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
		one := Field{Value: raw}
		one.Name, _ = name.(string) // keys of an object are strings
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

// encode returns a value as JSON, with < > & as they are.
func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}
