"""No models. Django sends ``pre_migrate`` only to apps that have this module."""
