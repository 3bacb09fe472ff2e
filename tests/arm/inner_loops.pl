#!/usr/bin/perl
# Lists the innermost loops of an assembly file, as GCC writes it for ARM (64 or 32 bits): for each, its multiply-adds, its
# instructions, its calls, its accesses to the stack, and the function, a line each, separated by tabs.
#
#   inner_loops.pl FILE.s | c++filt
#
# A loop is what the flow of control says, not what lies between a label and a branch to it: compilers put rare cases
# elsewhere. So: basic blocks, their dominators, an edge back to a dominator is a loop, and its body is what leads there.
use strict;
use warnings;

my (%blocks, @order);    # of one function: name => {text => [...], next => [...]}

# Splits at labels and after branches.
sub basic_blocks {
  my @lines = @_;
  my ($name, $count) = ('entry', 0);
  %blocks = (entry => {text => [], next => []});
  @order = ('entry');
  my ($open, %named) = (1);
  my $begin = sub {
    my $new = shift;
    push @{$blocks{$name}{next}}, $new if $open;
    $name = $new;
    $blocks{$name} = {text => [], next => []};
    push @order, $name;
    $open = 1;
  };
  for my $line (@lines) {
    if ($line =~ /^(\.L\w+):/) {
      $begin->($1);
    } elsif ($line =~ /^\s+([a-z][\w.]*)\s*(.*)/) {
      my ($op, $rest) = ($1, $2);
      $begin->('after' . ++$count) unless $open;
      push @{$blocks{$name}{text}}, "$op $rest";
      next if $op =~ /^bl/;
      if ($op =~ /^(b|cb|tb)/ && $rest =~ /(\.L\w+)\s*$/) {
        push @{$blocks{$name}{next}}, $1;
        $named{$1} = 1;
        if ($op eq 'b') { $open = 0 } else { $begin->('after' . ++$count) }
      } elsif ($op =~ /^(ret|br|bx|tbb|tbh)$/ || "$op $rest" =~ /^(pop|ldm\w*)\b.*\bpc\}/) {
        $open = 0;
      }
    }
  }
  # What only a table of jumps names may come from anywhere.
  for my $label (grep { /^\.L/ && !$named{$_} } @order) {
    push @{$blocks{entry}{next}}, $label;
  }
  $_->{next} = [grep { exists $blocks{$_} } @{$_->{next}}] for values %blocks;
}

# Blocks that control passes on every way to each block.
sub dominators {
  my (%of, %before);
  for my $from (@order) { push @{$before{$_}}, $from for @{$blocks{$from}{next}} }
  $of{entry} = {entry => 1};
  for (my $changed = 1; $changed;) {
    $changed = 0;
    for my $name (@order[1 .. $#order]) {
      my @known = grep { $of{$_} } @{$before{$name} || []} or next;
      my %common = %{$of{shift @known}};
      for my $other (@known) { delete @common{grep { !$of{$other}{$_} } keys %common} }
      $common{$name} = 1;
      if (!$of{$name} || keys %{$of{$name}} != keys %common) { $of{$name} = \%common; $changed = 1 }
    }
  }
  return (\%of, \%before);
}

# header => {block => 1, ...}
sub loops {
  my ($dominators, $before) = dominators();
  my %loops;
  for my $from (@order) {
    for my $header (grep { $dominators->{$from}{$_} } @{$blocks{$from}{next}}) {
      my $body = $loops{$header} ||= {$header => 1};
      my @to_visit = ($from);
      while (@to_visit) {
        my $name = pop @to_visit;
        next if $body->{$name}++;
        push @to_visit, @{$before->{$name} || []};
      }
    }
  }
  return \%loops;
}

sub report {
  my ($function, @lines) = @_;
  basic_blocks(@lines);
  my $loops = loops();
  for my $header (grep { $loops->{$_} } @order) {
    my $body = $loops->{$header};
    next if grep { $_ ne $header && $body->{$_} } keys %$loops;
    my @text = map { @{$blocks{$_}{text}} } grep { $body->{$_} } @order;
    my $products = grep { /^(fml|fmadd|fmsub|vml|vfm|vnml)/ } @text;
    my $calls = grep { /^bl/ } @text;
    my $stack = grep { /\[(sp|x29)\b/ } @text;
    print join("\t", $products, scalar @text, $calls, $stack, $function), "\n";
  }
}

my ($function, @lines) = ('');
while (<>) {
  if (/^([A-Za-z_][\w.\$]*):/) { ($function, @lines) = ($1) }
  elsif (/^\s+\.cfi_endproc|^\s+\.fnend/) { report($function, @lines) if $function; ($function, @lines) = ('') }
  else { push @lines, $_ }
}
