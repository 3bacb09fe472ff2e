#!/usr/bin/env python3
"""How long inner loops take on a Cortex-A53, the processor of Raspberry Pi 3 and Zero 2, by a model of its pipeline, which
issues two instructions a cycle at most, in the order of the program. Reads assembly files as GCC writes them for 64-bit ARM;
looks at loops of one basic block.

    pipeline.py [--least N] [--table] FILE.s ... | c++filt

A line for each loop: multiply-adds of vectors, instructions, accesses to the stack, cycles a turn, share of the peak of
one multiply-add a cycle, share of the cycles in which the vector unit has something to do, and the share of the peak if that
were all cycles. With --table also in how many cycles it does what is no multiply-add: loads and stores; comparisons,
choices, maxima and minima; conversions and all of double precision; divisions; other; and by llvm-mca-14 the share of the
same peak on a Cortex-A72 and A76. Then the function. README.md has the sources of the numbers.

Caches always hit, and branches are always foreseen: real processors are slower.
"""
import argparse
import re
import subprocess
from dataclasses import dataclass, field

LOAD_CYCLES = {'q': 2, 'd': 1, 's': 1, 'h': 1, 'b': 1, 'v': 2, 'x': 1, 'w': 1}
LOAD_LATENCY = {'q': 5, 'd': 4, 's': 4, 'h': 4, 'b': 4, 'v': 5, 'x': 3, 'w': 3}
FORWARDED_LOAD = 5    # cycles from a store until a load of the same address is there
ACCUMULATOR = 4       # from one multiply-add to the next with the same sum
MULTIPLY_ADD = 8      # until anything else has the sum
DIVISION = 12         # cycles of the vector unit, for a vector
LOAD_SHADOW = 4       # a vector is not loaded that many cycles after a multiply-add
BRANCH = re.compile(r'(b|b\.?(eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)|cbn?z|tbn?z|bl|br|blr|ret)$')


@dataclass
class Instruction:
    text: str
    reads: list = field(default_factory=list)
    writes: dict = field(default_factory=dict)  # register: cycles until it is there
    sum: str = ''          # the register that a multiply-add adds to
    halves: int = 0        # of the vector unit's 128 bits
    unit_cycles: int = 1   # of the vector unit
    memory_cycles: int = 0
    memory: str = ''
    stores: bool = False
    branches: bool = False
    multiplies: bool = False
    loads_vector: bool = False


def registers(text):
    found = []
    for kind, number in re.findall(r'\b([xwvqdshb])(\d+)\b|\bsp\b', text):
        found.append(('r' if kind in 'xw' else 'v') + number if kind else 'sp')
    return found


def width_of(operand):
    kind = re.search(r'\b([xwvqdshb])\d+', operand)
    return kind.group(1) if kind else 'x'


def parse(line):
    op, _, rest = line.strip().partition('\t') if '\t' in line.strip() else line.strip().partition(' ')
    operands = [o.strip() for o in re.split(r',(?![^\[{]*[\]}])', rest.strip())] if rest.strip() else []
    made = Instruction(' '.join(line.split()))
    address = re.search(r'\[[^\]]*\]', rest) if op.startswith(('ld', 'st', 'prfm')) else None
    of = [registers(o) for o in operands]
    all_registers = [r for each in of for r in each]
    vectors = any(r.startswith('v') for r in all_registers)
    if address:
        count = 2 if op.startswith(('ldp', 'stp')) else 1
        kind = width_of(operands[0]) if operands else 'x'
        data = all_registers[:0] if op == 'prfm' else [r for each in of[:count] for r in each]
        made.memory = address.group(0)
        made.reads = registers(made.memory) + [r for each in of[count:] for r in each]
        if op.startswith('st'):
            made.stores, made.memory_cycles = True, count if kind == 'q' else 1
            made.reads += data
            made.halves = 1 if vectors and kind in 'qdshbv' else 0
        elif op == 'prfm':
            made.memory_cycles = 1
        else:
            wide = kind in 'qdshbv'
            one_lane = wide and bool(re.search(r'\}\[\d', rest))
            cycles = (1 if one_lane else LOAD_CYCLES[kind]) * count
            made.memory_cycles = cycles if wide else count
            made.loads_vector = wide
            made.halves, made.unit_cycles = (2 if cycles > 1 else 1, cycles) if wide else (0, 1)
            for i, register in enumerate(data):
                made.writes[register] = LOAD_LATENCY[kind] + i * (LOAD_CYCLES[kind] if wide else 1)
            if one_lane:
                made.reads += data
        base = registers(made.memory)[:1]
        if base and (rest.rstrip().endswith('!') or re.search(r'\],', rest)):
            made.writes[base[0]] = 1
        return made
    if BRANCH.match(op):
        made.branches = True
        made.reads = all_registers + (['flags'] if operands and not all_registers and op != 'b' else [])
        return made
    if op in ('cmp', 'cmn', 'tst', 'ccmp'):
        made.reads, made.writes = all_registers, {'flags': 1}
        return made
    target = of[0] if of else []
    made.reads = [r for each in of[1:] for r in each]
    if not vectors:
        slow = bool(re.search(r'\b(lsl|lsr|asr|ror)\b', rest)) or re.match(r'(ubf|sbf|bf|lsl|lsr|asr|extr|sxt|uxt)', op)
        latency = 5 if op.startswith(('madd', 'mul', 'msub', 'smull', 'umull', 'smadd', 'umadd')) else 2 if slow else 1
        made.writes = {r: latency for r in target}
        if op in ('adds', 'subs', 'ands'):
            made.writes['flags'] = 1
        if op.startswith(('csel', 'cset', 'csinc', 'cinc')):
            made.reads.append('flags')
        if op in ('bfi', 'bfxil', 'movk'):
            made.reads += target
        return made
    wide = bool(re.search(r'\bq\d|\.(4s|2d|16b|8h)\b', rest))
    made.halves = 2 if wide else 1
    latency = 2
    if re.match(r'f(mla|mls|madd|msub|nmadd|nmsub)', op):
        latency, made.multiplies = MULTIPLY_ADD, wide
        if op in ('fmla', 'fmls'):
            made.sum = target[0]
    elif op.startswith(('fdiv', 'fsqrt')):
        latency, made.unit_cycles, made.halves = DIVISION + 6, DIVISION, 2
    elif op.startswith('fmov') or op in ('ins', 'dup', 'mov', 'movi', 'mvni', 'umov'):
        made.halves = 1 if re.search(r'\.[sd]\[|\b[dsxw]\d+', rest) and op != 'dup' else made.halves
        if op in ('ins', 'mov') and operands and '[' in operands[0]:
            made.reads += target
    elif op.startswith('f') and not op.startswith('fcm'):
        latency, made.multiplies = 4, wide and op == 'fmul'
    elif op in ('bif', 'bit', 'bsl'):
        made.reads += target
    made.writes = {r: latency for r in target}
    return made


def cycles_of(loop, turns=32):
    """Cycles of one turn, once the loop is under way."""
    ready, sums, stored, products = {}, {}, {}, set()
    now, slots, halves, unit_free, memory_free = 0, 2, 2, 0, 0
    ends = []
    for _ in range(turns):
        for i in loop:
            at = max([now] + [ready.get(r, 0) for r in i.reads] + ([sums.get(i.sum, ready.get(i.sum, 0))] if i.sum else []))
            if i.memory_cycles:
                at = max(at, memory_free)
                if not i.stores and i.memory in stored and i.writes:
                    at = max(at, stored[i.memory] + FORWARDED_LOAD - max(i.writes.values()))
            if i.halves:
                at = max(at, unit_free)
            while True:
                if at > now:
                    now, slots, halves = at, 2, 2
                if slots and halves >= i.halves and not (i.loads_vector and now - LOAD_SHADOW in products):
                    break
                at = now + 1
            slots, halves = slots - 1, halves - i.halves
            if i.memory_cycles:
                memory_free = now + i.memory_cycles
            if i.halves and i.unit_cycles > 1:
                unit_free, halves = now + i.unit_cycles, 0
            if i.multiplies:
                products.add(now)
            for register, latency in i.writes.items():
                ready[register] = now + latency
                sums[register] = now + (ACCUMULATOR if i.sum else latency)
            if i.stores:
                stored[i.memory] = now
            if i.branches:
                slots = 0
        ends.append(now)
    middle = turns // 2
    return (ends[-1] - ends[middle - 1]) / (turns - middle)


CHOICE = re.compile(r'(fcm|cm|fmax|fmin|smax|smin|umax|umin|bif|bit|bsl|and|orr|eor|bic|mvn)')


def kind_of(i):
    """What the vector unit does for an instruction; nothing for others."""
    op = i.text.split()[0]
    if not i.halves:
        return ''
    if i.multiplies:
        return 'multiply_adds'
    if i.memory:
        return 'memory'
    if op.startswith(('fdiv', 'fsqrt')):
        return 'divisions'
    if op.startswith(('fcvt', 'scvtf', 'ucvtf', 'sshll', 'ushll', 'xtn')) or '.2d' in i.text:
        return 'conversions'
    return 'choices' if CHOICE.match(op) else 'other'


KINDS = ('multiply_adds', 'memory', 'choices', 'conversions', 'divisions', 'other')


def unit_cycles_of(loop):
    """{kind: cycles of the vector unit, at two instructions of 64 bits or one of 128 a cycle}"""
    cycles = dict.fromkeys(KINDS, 0)
    for i in loop:
        if kind := kind_of(i):
            cycles[kind] += i.unit_cycles if i.unit_cycles > 1 else i.halves / 2
    return cycles


def loops_in(lines):
    """(function, lines) of each basic block that branches back to its own beginning."""
    function, label, block = '', None, []
    for line in lines:
        line = line.split('//')[0].rstrip()
        if name := re.match(r'^([A-Za-z_][\w.$]*):', line):
            function, label = name.group(1), None
        elif begin := re.match(r'^(\.L\w+):', line):
            label, block = begin.group(1), []
        elif re.match(r'^\s+[a-z]', line) and label:
            block.append(line)
            if BRANCH.match(line.split()[0]):
                if re.search(r'\s' + re.escape(label) + r'$', line):
                    yield function, block
                label = None


def share_on(processor, block, products):
    """By llvm-mca, whose A76 is its A72."""
    text = '\n'.join(line for line in block if not BRANCH.match(line.split()[0]))
    made = subprocess.run(['llvm-mca-14', '-mtriple=aarch64', f'-mcpu={processor}', '-iterations=200'], input=text + '\n',
                          capture_output=True, text=True, check=True).stdout
    return products * 200 / int(re.search(r'Total Cycles:\s+(\d+)', made).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('assembly', nargs='+')
    parser.add_argument('--least', type=int, default=16, help='multiply-adds of a loop to list it; default: 16')
    parser.add_argument('--table', action='store_true', help='also ask llvm-mca-14')
    options = parser.parse_args()
    for path in options.assembly:
        with open(path, encoding='utf-8') as file:
            lines = file.read().split('\n')
        for function, block in loops_in(lines):
            loop = [parse(line) for line in block]
            products = sum(i.multiplies for i in loop)
            if products < options.least:
                continue
            cycles = cycles_of(loop)
            kinds = unit_cycles_of(loop)
            busy = sum(kinds.values())
            stack = sum('sp' in i.memory for i in loop)
            others = []
            if options.table:
                others = [f'{kinds[kind]:g}' for kind in KINDS[1:]]
                others += [f'{share_on(cpu, block, products):.0%}' for cpu in ('cortex-a72', 'cortex-a76')]
            print(products, len(loop), stack, f'{cycles:.1f}', f'{products / cycles:.0%}', f'{busy / cycles:.0%}', f'{products / busy:.0%}', *others, function,
                  sep='\t')


if __name__ == '__main__':
    main()
