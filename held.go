package dibs

// Holds reports whether this node holds a campaign, from its memory: whether
// Held has it.
func (s *Service) Holds(id string) bool {
	_, ok := s.lives.Load(id)
	return ok
}

// Held returns the campaigns that this node holds, from its memory: those that
// are published or paused, and those that ended a while ago. It may be called
// often; the campaigns are read-only.
func (s *Service) Held() []*Campaign {
	var held []*Campaign
	s.lives.Range(func(_, v any) bool {
		held = append(held, v.(*live).campaign.Load())
		return true
	})
	return held
}
