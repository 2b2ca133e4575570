"""A decoder-only transformer as far as its memory depends on it. None is unknown: what needs it is then left out, never guessed."""

from __future__ import annotations

from memdoctor.records import record


@record
class Model:
    """Sizes of the whole model, before any split.

    ``heads`` query heads and ``groups`` key/value heads of ``head_dim``; ``ffn`` the width of the MLP (of one half where it is ``gated``);
    ``vocab`` rows of the embedding, padded; ``seq`` tokens of a sample; ``positions`` rows of a learned position embedding; ``norm`` vectors of
    one norm (1 RMSNorm, 2 LayerNorm); ``bias`` whether linear layers have one. ``experts`` routed experts of a MoE layer, each ``moe_ffn`` wide,
    ``topk`` of them used by a token; ``shared_ffn`` the width of the shared experts; ``moe_layers`` which layers are MoE (empty: all, if
    there are experts). ``attention_parameters``: weights of one attention, where they are not the usual four matrices (MLA).
    ``mtp`` layers for multi-token prediction.
    """

    hidden: int
    layers: int | None = None
    heads: int | None = None
    groups: int | None = None
    head_dim: int | None = None
    ffn: int | None = None
    gated: bool = False
    vocab: int | None = None
    seq: int | None = None
    positions: int = 0
    tied: bool = True
    norm: int = 2
    bias: bool = False
    experts: int = 0
    moe_ffn: int | None = None
    topk: int = 2
    shared_ffn: int = 0
    moe_layers: tuple[bool, ...] = ()
    attention_parameters: int | None = None
    mtp: int = 0

    @property
    def query(self) -> int | None:
        """Width of all query heads together."""
        return self.heads * self.head_dim if self.heads and self.head_dim else None

    @property
    def qkv(self) -> int | None:
        """Width of queries, keys and values together."""
        groups = self.groups or self.heads
        return (self.heads + 2 * groups) * self.head_dim if self.heads and groups and self.head_dim else None

    @property
    def fc1(self) -> int | None:
        """Width of the MLP's first product: both halves where it is gated."""
        return self.ffn * (2 if self.gated else 1) if self.ffn else None

    @property
    def expert_fc1(self) -> int | None:
        """The same of one expert."""
        return self.moe_ffn * (2 if self.gated else 1) if self.moe_ffn else None

    @property
    def has_dense(self) -> bool:
        """Whether a layer has one MLP for all tokens."""
        return not self.experts or not all(self.moe_layers or (True,))

    def is_moe(self, layer: int) -> bool:
        """Whether layer ``layer`` (0-based) has experts in place of one MLP."""
        if not self.experts:
            return False
        return self.moe_layers[layer] if layer < len(self.moe_layers) else not self.moe_layers
