"""Speed and memory: the code behind python -m benchmarks.

`models` (candidates; `straightforward` is one) ← `run` (time), `memory`,
`profile` ← `sections` (measuring, keeping, going on) ← `commands`. The preset
`goals` is in `preset` and `goals`; `tables`, `figure`, `paper` and `report`
write what was measured.
"""
