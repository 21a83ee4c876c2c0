"""A DataLoader with two worker processes (forked), and one with a custom collate function and no worker."""
# needs: torch

import torch
from show import show
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((30,), float(index)).sin() @ torch.ones(30, 5)


def collate(batch: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(batch).cos()


if __name__ == "__main__":
    for batch in DataLoader(Squares(), batch_size=10, num_workers=2):
        show("batch", batch)
    for batch in DataLoader(Squares(), batch_size=10, collate_fn=collate):
        show("batch", batch)
