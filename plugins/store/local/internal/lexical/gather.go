package lexical

import (
	"slices"

	"github.com/racflow/racflow/plugins/store/local/internal/snapshot"
	"github.com/racflow/racflow/plugins/store/local/internal/topk"
)

// gather scores few selected rows. It gallops through them and through the lists.
func (l *lexical) gather(p *snapshot.Part, rows []uint32, others []topk.Scored) {
	l.some = slices.Grow(l.some[:0], len(rows))[:len(rows)]
	clear(l.some)
	for i := range l.lists {
		list := &l.lists[i]
		for at := 0; at < len(rows) && len(list.rows) > 0; {
			if ahead := gallop(list.rows, rows[at]); ahead > 0 {
				list.skip(ahead)
				continue
			}
			if list.rows[0] > rows[at] {
				at += gallop(rows[at:], list.rows[0])
				continue
			}
			l.some[at] += float32(list.weight * l.share(list.tf(0), p.Lengths[rows[at]]))
			list.skip(1)
			at++
		}
	}
	for i, sum := range l.some {
		if sum >= l.floor {
			l.offer(p, nil, int32(rows[i]), sum)
		}
	}
	for i := range others {
		if at, ok := slices.BinarySearch(rows, uint32(others[i].Row-p.Base)); ok {
			others[i].Score = l.some[at]
		}
	}
}
