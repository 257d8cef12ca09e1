_base_ = 'mmpretrain::_base_/default_runtime.py'

# Importing the package registers its backbones, whatever the runner.
custom_imports = dict(imports=['inline_mm'], allow_failed_imports=False)

# The newest, and the best by top-1, instead of one per epoch.
default_hooks = dict(
    checkpoint=dict(max_keep_ckpts=3, save_best='accuracy/top1')
)
