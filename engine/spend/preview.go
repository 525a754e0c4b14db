package spend

// Preview is what a limit probably comes to, by a first pass over some items.
type Preview struct {
	Items  int
	Calls  int
	Cost   float64
	Doubt  float64 // of these items: the sum of what is expected of asking, which is one minus the confidence
	Errors int     // of these items: how many the free voters got wrong, by labels
}

// Preview returns what so much comes to after the first pass. wrong are the lines of items
// that the free voters got wrong.
func (s *Spender) Preview(amount float64, wrong map[int]bool) Preview {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order()
	var p Preview
	left := amount * (1 + rounding)
	for _, b := range s.bids {
		likely := s.options.Limit.likely(b.bill)
		if likely > left {
			continue
		}
		left -= likely
		p.Items++
		p.Calls += b.bill.Calls
		p.Cost += b.bill.Cost
		p.Doubt += b.bill.Gain
		if wrong[b.line] {
			p.Errors++
		}
	}
	return p
}
