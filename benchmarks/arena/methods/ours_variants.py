"""CART with other defaults than it has: what they would be worth."""

METHODS = {
    "CART, 8 leaves": {"name": "cart", "params": {"max_leaf_nodes": 8, "max_depth": None}},
    "CART, 6 leaves": {"name": "cart", "params": {"max_leaf_nodes": 6, "max_depth": None}},
    "CART, 8 leaves, all features": {
        "name": "cart",
        "params": {"max_leaf_nodes": 8, "max_depth": None, "n_features_to_select": None},
    },
}
