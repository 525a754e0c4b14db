// Package recursive cuts any text into chunks of a given size, at the strongest
// separators there are: between paragraphs before between lines, sentences and
// words.
//
// A chunk takes as much as fits. It ends at the last break of the strongest kind
// that leaves it at least half full; where there is none, at the last break of any
// kind but words; between words where a sentence alone is too long; and inside a
// word only where that is. So small paragraphs are joined, and large ones cut
// into sentences. The result is that of splitting recursively and joining small
// pieces again, in one pass and in linear time.
//
// Without overlap the chunks joined are the document: white space between two
// chunks belongs to the first. An overlap repeats the end of a chunk in the next
// one, from its first break on, so that it may be shorter than asked for.
//
// A chunk that begins in the rows of a Markdown table repeats the header of the table
// (sdk.Chunk.Header), which counts towards its size, unless that is more than half of it.
//
// Apart from that it does not look at what a text means, nor at its format.
package recursive
