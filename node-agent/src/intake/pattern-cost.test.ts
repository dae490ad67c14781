import { expect, test } from "vitest";
import { patternCost } from "./pattern-cost.ts";

test.each([
  ["^abc$", 3],
  ["^a{3}$", 3],
  ["^a{2,5}$", 5],
  ["^a{4,}$", 5],
  ["^((a{0,50}){0,50}){0,50}$", 125_000],
  ["^([a-z]{10}){10}$", 100],
  ["^(?:ab|cd)?e*$", 5],
  [String.raw`^\d{4}-\x41\u0041[\]a]$`, 8],
  ["^(?<name>ab)(?=c)$", 3],
  ["", 0],
  ["^)(]$", 2],
])("%s has %i characters when it is written out", (pattern, size) => {
  expect(patternCost(pattern).size).toBe(size);
});

test.each([
  ["one way", "^[a-z]+-[0-9]+$", 1],
  ["one way: the characters between rounds separate them", "^[a-z]+(,[a-z]+)*$", 1],
  ["one way: words differ in a letter", "^(get|gift|put)(,(get|gift|put))*$", 1],
  ["one way, however often", "^([a-z]{2}){1,400}$", 1],
  ["one way for each place of the change", "^a*a*b$", 65],
  ["ways multiply", "^a*a*a*b$", 65 * 65],
  ["an optional character twice", "^a?a?$", 2],
  ["words that begin alike", "^(a|ab)c$", 2],
  ["a round that may be empty", "^(a*)*$", Infinity],
  ["a round that can continue after its end", "^(a+)+$", Infinity],
  ["words that consist of each other, repeated", "^(-|--)*$", Infinity],
  ["the same word twice, repeated", "^(a|a)*$", Infinity],
  ["a class that overlaps, repeated", String.raw`^(\w|[a-f]\d)*$`, Infinity],
  ["groups that are nested too deeply", "(".repeat(100), Infinity],
])("%s: %s [D10]", (_, pattern, ways) => {
  expect(patternCost(pattern).ways).toBe(ways);
});

test.each([
  ["^a{1,500}$", 2],
  ["^a{1,500}b{1,500}$", 3],
  ["^a{1,60}a{1,60}$", 62],
  ["^(apple|pear|lemon)$", 3],
  ["^(pear|plum|peach)$", 3],
  ["^(a{1,3}b?){20}$", 80],
])("%s can be at %i of its places at once", (pattern, choices) => {
  expect(patternCost(pattern).choices).toBe(choices);
});

test.each([
  ["^a*b+c?$", 0],
  ["^a{3}$", 3],
  ["^a{4,}(b{2,130}|c){5}$", 130],
])("%s repeats something at most %i times", (pattern, most) => {
  expect(patternCost(pattern).repetitionMax).toBe(most);
});
