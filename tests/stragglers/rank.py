"""A rank of a data-parallel job: torch's DDP over gloo, its phases marked by hand, and delays and hangs that its controls ask for.

    rank.py RANK RANKS INIT_METHOD CONTROLS STEP_SECONDS

The gradients are reduced by a hook of DDP in the phase `sync`, one step by one process group, the next by another, as in jobs with several
groups. `controls.py` describes the file CONTROLS. It prints "trains" after its first step, and trains until it is ended.
"""

import os
import sys
import threading
import time


def main():
    rank, ranks, init_method, controls_file, step_seconds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4], float(sys.argv[5])
    os.environ["REPLICA_INDEX"] = str(rank)
    import torch
    import torch.distributed as dist
    from controls import Controls, Hang
    from persia_metrics import phase, set_step

    torch.set_num_threads(1)
    torch.manual_seed(7)
    controls = Controls(controls_file)
    dist.init_process_group("gloo", init_method=init_method, rank=rank, world_size=ranks)
    groups = [dist.new_group(), dist.new_group()]
    step, lost = 0, []

    def late(group, gradients):
        """Takes part in the collective that was left out, once the controls end the hang."""
        controls.wait_for_no_hang()
        dist.all_reduce(gradients, group=group)

    def reduce(_state, bucket):
        gradients, group = bucket.buffer().div_(ranks), groups[step % 2]
        with phase("sync"):
            if controls.hang == Hang.LOST_COLLECTIVE and not lost:
                lost.append(threading.Thread(target=late, args=(group, gradients.clone())))
                lost[0].start()
            else:
                dist.all_reduce(gradients, group=group)
        done = torch.futures.Future()
        done.set_result(gradients)
        return done

    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
    model.register_comm_hook(None, reduce)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    batches = threading.Lock()

    def read_batch():
        if controls.hang == Hang.DEADLOCK_IN_DATA:
            batches.acquire()
            threading.Thread(target=lambda: (controls.wait_for_no_hang(), batches.release())).start()
        with batches:
            return torch.randn(32, 64)

    def work(name, part):
        time.sleep(part * step_seconds + controls.delay(name))

    while True:
        set_step(step)
        with phase("data"):
            work("data", 0.25)
            batch = read_batch()
        with phase("forward"):
            work("forward", 0.25)
            loss = model(batch).square().mean()
        with phase("backward"):
            work("backward", 0.3)
            optimizer.zero_grad()
            loss.backward()
        with phase("optimizer"):
            optimizer.step()
        with phase("checkpoint"):
            work("checkpoint", 0.1)
        if lost and not lost[0].is_alive():
            lost.clear()
        step += 1
        if step == 1:
            print("trains", flush=True)


if __name__ == "__main__":
    main()
