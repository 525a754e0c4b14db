package lexical

import "github.com/racflow/racflow/plugins/store/local/internal/topk"

// raise lifts the floor to the score that as many rows as are wanted reach for
// certain: their sums over some of the words only grow with the others.
func (l *lexical) raise() {
	l.certain = topk.Scores{Size: l.best.Depth, Heap: l.certain.Heap[:0]}
	for _, s := range l.best.Heap {
		l.certain.Offer(s.Score)
	}
	for _, at := range l.touched {
		if sum := l.sums[at]; sum > l.floor && alive(l.part, l.among, int32(l.low)+int32(at)) {
			l.certain.Offer(sum)
			l.floor = max(l.floor, l.certain.Floor())
		}
	}
}
