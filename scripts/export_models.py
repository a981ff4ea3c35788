#!/usr/bin/env python3
"""Exports resnet50, mobilenet_v3_large and bert_base_s128 from PyTorch, with seeded weights, to where scripts/models
keeps its models: export_models.py [name ...]; all of them without a name. What is there already stays.

Only bench/peers.py and bench/tune.py use them. It needs PyTorch, torchvision, transformers and onnxscript (some GB), which
are no part of ./test's packages:
  .venv/bin/pip install torch==2.15.0 torchvision==0.29.2 transformers==5.24.0 onnxscript==0.7.2

The pins matter: another version of an exporter writes other nodes, and the sha256 that is printed changes."""
import hashlib
import importlib
import os
import sys
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.environ.get("RUTTER_MODELS") or os.path.join(ROOT, ".cache", "models")


def need(names):
    missing = []
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as e:
            missing.append("{} ({})".format(name, e))
    if missing:
        install = [line.strip() for line in __doc__.splitlines() if "pip install" in line][0]
        sys.exit("export_models.py: missing: {}. Install them: {}".format("; ".join(missing), install))


def image(name):
    import torch
    import torchvision
    model = getattr(torchvision.models, name)(weights=None)
    return model, (torch.randn(1, 3, 224, 224),)  # its input is named x, as the argument of its forward()


def bert():
    import torch
    from transformers import BertConfig, BertModel

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = BertModel(BertConfig(), add_pooling_layer=False)  # 12 layers, 768, 12 heads

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    ids = torch.randint(0, 30000, (1, 128))
    return Hidden(), (ids, torch.ones_like(ids))


MODELS = {
    "resnet50": (lambda: image("resnet50"), ["torchvision"]),
    "mobilenet_v3_large": (lambda: image("mobilenet_v3_large"), ["torchvision"]),
    "bert_base_s128": (bert, ["transformers"]),
}


def make_lively(model, example):
    """As initialised, MobileNetV3 answers 1e-10 whatever it is given, biases of BERT are zero and weights of its norms
    one: a compiler that dropped them would be found right. Parameters of one constant get noise, and the statistics of
    batch normalisation are taken from two random batches."""
    import torch
    g = torch.Generator().manual_seed(1)
    model.eval()
    with torch.no_grad():
        for p in model.parameters():
            first = p.flatten()[0]
            if p.numel() > 1 and (p == first).all():
                p.add_(torch.randn(p.shape, generator=g) * (0.1 if first else 0.02))
        norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
        for m in norms:
            m.reset_running_stats()
            m.momentum = None
            m.train()
        if norms:
            for _ in range(2):
                model(torch.randn(8, *example[0].shape[1:], generator=g))
    return model.eval()


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def export(name):
    import torch
    torch.manual_seed(0)
    model, example = MODELS[name][0]()
    part = os.path.join(CACHE, name + ".part.onnx")
    torch.onnx.export(make_lively(model, example), example, part, opset_version=18, dynamo=True, external_data=False)
    os.replace(part, os.path.join(CACHE, name + ".onnx"))


def main(names):
    if set(names) & {"-h", "--help"}:
        print(__doc__)
        return
    unknown = [n for n in names if n not in MODELS]
    if unknown:
        sys.exit("export_models.py: no model named {}; there are {}".format(", ".join(unknown), ", ".join(MODELS)))
    path_of = {n: os.path.join(CACHE, n + ".onnx") for n in names or MODELS}
    wanted = [n for n in path_of if not os.path.exists(path_of[n])]
    if wanted:
        warnings.filterwarnings("ignore")
        need(["torch", "onnx", "onnxscript"] + sorted({p for n in wanted for p in MODELS[n][1]}))
        os.makedirs(CACHE, exist_ok=True)
    for name, path in path_of.items():
        if name in wanted:
            export(name)
        print("{} {} sha256 {}".format(name, path, sha256(path)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
