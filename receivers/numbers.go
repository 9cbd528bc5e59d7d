package receivers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

var errTrailing = errors.New("data after the JSON object")

// parseObject returns a JSON object in the form that expressions read, nil for null. An integer becomes an int64, or a uint64 if it is
// too large for that, because IDs above 2^53 would lose digits as a float64. All other numbers become a float64.
func parseObject(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errTrailing
	}
	return fields, convertFields(fields)
}

// convertFields converts the numbers in an object. The depth is bounded by the decoder.
func convertFields(fields map[string]any) (err error) {
	for name, value := range fields {
		if fields[name], err = convert(value); err != nil {
			return err
		}
	}
	return nil
}

func convert(value any) (_ any, err error) {
	switch v := value.(type) {
	case json.Number:
		return number(string(v))
	case map[string]any:
		return v, convertFields(v)
	case []any:
		for i := range v {
			if v[i], err = convert(v[i]); err != nil {
				return nil, err
			}
		}
	}
	return value, nil
}

// number converts a number. It returns an error if the number is outside the range of a float64. An integer that does not fit into 64
// bits is rounded, because CEL has no type for it.
func number(text string) (any, error) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u, nil
	}
	return strconv.ParseFloat(text, 64)
}
