"""What the paper on Boolean attributions prints, and why other figures come out here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_ARITIES = tuple(map(str, range(3, 11)))

Printed = Mapping[str, Mapping[str, float]]


def _by_arity(rows: dict[str, str]) -> Printed:
    return {
        name: dict(zip(_ARITIES, map(float, figures.split()), strict=True))
        for name, figures in rows.items()
    }


_SMALL = ("and", "or", "xor", "xor-and-xor")

#: Tables 1 to 5: for every row its figures by column (arity, or name of the formula).
PRINTED: Mapping[int, Printed] = MappingProxyType(
    {
        1: _by_arity({
            "B-ReX": ".754 .782 .582 .398 .344 .368 .426 .384",
            "ShapleyValues": ".404 .266 .296 .152 .262 .162 .32 .15",
            "KernelShap": ".03 .002 .038 .002 .034 .004 .038 .004",
            "Saliency": ".23 .238 .374 .268 .334 .262 .4 .242",
            "DeepLift": ".25 .256 .264 .182 .256 .268 .31 .122",
            "InputXGrad": ".002 0 0 0 0 0 0 0",
        }),
        2: _by_arity({
            "B-ReX": ".774 .692 .63 .648 .662 .676 .642 .664",
            "ShapleyValues": ".704 .512 .506 .474 .464 .576 .518 .486",
            "KernelShap": ".05 .032 .042 .036 .044 .05 .042 .042",
            "Saliency": ".458 .432 .416 .46 .342 .538 .334 .382",
            "DeepLift": ".65 .524 .538 .52 .458 .65 .47 .472",
            "InputXGrad": ".446 .008 .382 .048 .486 .088 .334 .032",
        }),
        3: _by_arity({
            "B-ReX": ".021 .018 .037 .039 .064 .066 .063 .072",
            "ShapleyValues": ".139 .171 .192 .205 .259 .256 .256 .269",
            "KernelShap": ".16 .205 .23 .24 .282 .284 .295 .303",
            "Saliency": ".128 .106 .123 .128 .123 .126 .112 .122",
            "DeepLift": ".073 .062 .085 .097 .09 .099 .108 .109",
            "InputXGrad": ".319 .301 .298 .4 .374 .279 .382 .342",
            "IntegratedGrad": ".071 .059 .081 .092 .089 .104 .106 .105",
        }),
        4: _by_arity({
            "B-ReX": ".009 .023 .025 .04 .029 .059 .053 .046",
            "ShapleyValues": ".094 .119 .124 .153 .139 .19 .179 .175",
            "KernelShap": ".127 .149 .16 .187 .178 .213 .211 .206",
            "Saliency": ".131 .146 .156 .144 .149 .159 .146 .146",
            "DeepLift": ".046 .055 .056 .061 .07 .068 .067 .072",
            "InputXGrad": ".499 .392 .362 .393 .407 .339 .399 .487",
            "IntegratedGrad": ".047 .056 .058 .066 .072 .074 .073 .075",
        }),
        5: {
            name: dict(zip(_SMALL, figures, strict=True))
            for name, figures in {
                "B-ReX": (0.992, 0.986, 1.0, 0.638),
                "ShapleyValues": (0.88, 0.878, 0.692, 0.536),
                "KernelShap": (0.068, 0.054, 0.024, 0.006),
                "Saliency": (0.842, 0.742, 0.684, 0.774),
                "DeepLift": (0.958, 0.806, 0.826, 0.734),
                "InputXGrad": (0.136, 0.642, 0.198, 0.314),
            }.items()
        },
    }
)  # fmt: skip

TITLES: Mapping[int, str] = MappingProxyType(
    {
        1: "Table 1: top-k accuracy on non-monotone chains ((x1 ^ x2) & x3) ^ ..., by arity",
        2: "Table 2: top-k accuracy on monotone chains ((x1 & x2) | x3) & ..., by arity",
        3: "Table 3: JSD in bits on random non-monotone formulae, by arity",
        4: "Table 4: JSD in bits on random monotone formulae, by arity",
        5: "Table 5: top-k accuracy on four small formulae",
    }
)

_NETWORKS = (
    "The paper does not say whether its networks saw Unassigned inputs, nor how inputs were coded."
)
_THREE = "Network trained on Kleene's three values, inputs coded -1, 0 and +1."
_THREE_NEAR = "Its gradient rows come nearer to the paper's than those of two-valued ones."
_TWO = (
    "Network trained on complete inputs only, coded -1 and +1, so that a baseline of 0 is nothing "
    "it has learnt."
)
_TWO_NEAR = "Its Shapley rows come nearer to the paper's than those of three-valued ones."

#: Why the figures of the divergence tables differ, by method.
_DIVERGENCE: Mapping[str, str] = MappingProxyType(
    {
        "brex-paper": "One pass, four blocks, the blocks that made the answer hang on a part stay "
        "Unassigned while it is refined. The paper names neither number of blocks nor of passes, "
        "and which formulae are drawn moves a cell by up to .02; on monotone arity 7 and 10 it is "
        "at the low end of what this reading gives.",
        "brex-literal": "Algorithm 3 to the letter: nothing else is Unassigned while a part is "
        "refined; mean of twenty passes; rows left without any attribution do not count.",
        "brex-certified": "Not in the paper: counts of single inputs with a certificate each, the "
        "best of all passes instead of a mean.",
        "brex-patient": "As certified, with up to a hundred passes, the last twenty in vain.",
        "shapley-unassigned": "The paper samples on a trained network; these are exact, on the "
        "formula itself with absent inputs Unassigned.",
        "shapley-completions": "Exact, absent inputs are drawn as fair coins. The paper samples "
        "on a trained network.",
        "shapley-sampled": "One random order forwards and backwards, as many questions as a pass "
        "of B-ReX, on the formula with absent inputs Unassigned.",
        "kernel-shap-25": "On the formula with absent inputs Unassigned; 25 samples as captum "
        "takes by default, for twelve unknowns, are mostly noise.",
        "kernel-shap": "On the formula with absent inputs Unassigned, with the samples that shap "
        "takes by default: all but exact Shapley values.",
    }
)
_TOP_K: Mapping[str, str] = MappingProxyType(
    {
        "brex-paper": "Relevant is what has a responsibility; the set of Tritscher et al., which "
        "the paper may have used, was not to be had. Equal values at the border are drawn fairly.",
        "brex-literal": "Nearest to the paper on and, or and xor: its rare failures there are "
        "pairs that never share a block in 10 to 20 passes. On xor-and-xor and on non-monotone "
        "chains from arity 5 the paper is lower, as a network that errs on Unassigned inputs would "
        "be, or another set of relevant inputs.",
        "brex-certified": "Not in the paper: never wrong about an input that does not matter; on "
        "long chains it stops, after six passes without a new question, before it has met every "
        "one that does.",
        "brex-patient": "Not in the paper: as certified, but it takes twenty passes without a new "
        "question before it stops, which costs time, and less than one question per row.",
        "shapley-unassigned": "Exact on the formula; the paper samples on a trained network, where "
        "inputs that do not matter get some value too.",
        "shapley-completions": "Exact on the formula; the paper samples on a trained network. "
        "Inputs of negative value count as none.",
        "shapley-sampled": "One random order forwards and backwards; the paper takes 25 orders on "
        "a trained network.",
        "kernel-shap-25": "On the formula with absent inputs Unassigned. The paper's figures near "
        "0, as if inputs that do not matter came first, do not come out.",
        "kernel-shap": "All but exact, but inputs that do not matter get values that are not "
        "quite 0.",
    }
)


def why_different(table: int, method: str) -> str:
    """What explains the difference between a method's figures and the paper's."""
    texts = _DIVERGENCE if table in {3, 4} else _TOP_K
    if method in texts:
        return texts[method]
    name, _, kind = method.partition(":")
    three_valued = kind == "three-valued"
    told = [_THREE if three_valued else _TWO]
    if name == "InputXGradient":
        told.append(
            "The paper's figures come out of neither kind of network; divergences of its size do "
            "where the sign of the predicted class is not heeded."
            if table in {3, 4}
            else "The paper's figures, mostly much lower, come out of neither kind of network."
        )
    elif name == "KernelShap":
        told.append(
            "25 samples for twelve unknowns, captum's default, are mostly noise."
            if table in {3, 4}
            else "The paper's figures near 0, as if inputs that do not matter came first, come out "
            "of neither kind of network."
        )
    elif name == "IntegratedGradients" and table not in {3, 4}:
        told.append("Not in the paper's table.")
    else:
        told.append(_NETWORKS)
        if table in {3, 4} and three_valued != (name == "ShapleyValueSampling"):
            told.append(_THREE_NEAR if three_valued else _TWO_NEAR)
    return " ".join(told)
