"""What runs inside a partition: splits of sources, hosts of levels, what goes between them."""
