package schedule

// Left returns how many lookups are left.
func (b *Budget) Left() int { return b.left }
