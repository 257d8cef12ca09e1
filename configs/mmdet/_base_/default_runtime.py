_base_ = 'mmdet::_base_/default_runtime.py'

# Importing the package registers its backbones, whatever the runner.
custom_imports = dict(imports=['inline_mm'], allow_failed_imports=False)
