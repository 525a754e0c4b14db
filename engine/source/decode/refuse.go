package decode

import (
	"bytes"
	"errors"
	"unicode/utf8"
)

// known are files that hold no text, by how they begin, with what can be done.
var known = []struct{ begins, advice string }{
	{"PK\x03\x04", "the file is a zip archive, which is binary: unpack it and name the file in it; if it is a workbook of Excel, its name ends in .xlsx, and it cannot come from standard input"},
	{"\xD0\xCF\x11\xE0", "the file is an old office file, or a new one with a password, which is binary: open it and save it as .xlsx without a password, or as CSV"},
	{"PAR1", "the file is Parquet, which is binary and cannot come from standard input or be packed again: name the file itself, with a name that ends in .parquet"},
	{"BZh", "the file is packed with bzip2: unpack it with bunzip2, or pack it with gzip or zstd"},
	{"\xFD7zXZ\x00", "the file is packed with xz: unpack it with xz -d, or pack it with gzip or zstd"},
	{"7z\xBC\xAF\x27\x1C", "the file is a 7z archive, which is binary: unpack it and name the file in it"},
	{"Rar!", "the file is a rar archive, which is binary: unpack it and name the file in it"},
	{"%PDF-", "the file is a PDF, which is no file of rows: name it as the documents of a knowledge, or export its table as CSV"},
	{"SQLite format 3\x00", "the file is a SQLite database, which is binary: list its tables with sqlite3 FILE .tables, and export one with sqlite3 -header -csv FILE 'select * from TABLE' > rows.csv"},
	{"ARROW1", `the file is Arrow or Feather, which is binary: write it as Parquet, with python3 -c "import pandas; pandas.read_feather('FILE').to_parquet('rows.parquet')"`},
	{"FEA1", `the file is Feather, which is binary: write it as Parquet, with python3 -c "import pandas; pandas.read_feather('FILE').to_parquet('rows.parquet')"`},
	{"\xFF\xFF\xFF\xFF", `the file is a stream of Arrow, which is binary: write it as Parquet, with python3 -c "import datasets; datasets.Dataset.from_file('FILE').to_parquet('rows.parquet')"`},
	{"Obj\x01", "the file is Avro, which is binary: write it as JSONL, with avro-tools tojson, or as Parquet"},
	{"ORC", "the file is ORC, which is binary: write it as Parquet or CSV"},
	{"\x80\x04\x95", `the file is a pickle of Python, which is binary: if you trust it, write it as Parquet, with python3 -c "import pandas; pandas.read_pickle('FILE').to_parquet('rows.parquet')"`},
	{"\x89HDF", "the file is HDF5, which is binary: write it as Parquet or CSV"},
}

// Refuse returns an error with advice where a file begins as one that holds no text.
func Refuse(head []byte) error {
	for _, k := range known {
		if bytes.HasPrefix(head, []byte(k.begins)) && (k.begins == "%PDF-" || bytes.IndexByte(head, 0) >= 0 || !utf8.Valid(head)) {
			return errors.New(k.advice)
		}
	}
	return nil
}
