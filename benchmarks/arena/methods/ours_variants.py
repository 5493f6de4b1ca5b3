"""CART with alternative default settings, for comparison with the actual default settings."""

METHODS = {
    "CART, 8 leaves": {"name": "cart", "params": {"max_leaf_nodes": 8}},
    "CART, 5 leaves": {"name": "cart", "params": {"max_leaf_nodes": 5}},
    "CART, three levels of 20 features": {
        "name": "cart",
        "params": {"max_depth": 3, "n_features_to_select": 20},
    },
}
