# The average of the weights is what gets tested and saved. Its decay is 0.9996
# for 4096 images per step, here (0.9996)^(1024 / 4096) = 0.9999.
custom_hooks = [dict(type='EMAHook', momentum=1e-4, priority='ABOVE_NORMAL')]
