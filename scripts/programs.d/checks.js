// What the parts in JavaScript share: a check is a function; its result is one line, `ok NAME` or `no NAME: why`.
"use strict";
const assert = require("node:assert");
const fs = require("node:fs");

const address = {
  host: process.env.PGHOST, port: Number(process.env.PGPORT), user: process.env.PGUSER, database: process.env.PGDATABASE,
};

// Fails unless the work fails with this SQLSTATE; answers the error.
async function fails(code, work) {
  try {
    await work();
  } catch (e) {
    const error = e.original || e.driverError || e.cause || e;
    assert.strictEqual(error.code, code, error.message);
    return error;
  }
  throw new Error(`${code} expected`);
}

// Of a package that does not export its package.json.
function version(name) {
  return JSON.parse(fs.readFileSync(`${process.env.NODE_PATH}/${name}/package.json`)).version;
}

function limited(work) {
  let timer;
  const late = new Promise((_, refuse) => (timer = setTimeout(() => refuse(new Error("no end after 20 seconds")), 20000)));
  return Promise.race([work(), late]).finally(() => clearTimeout(timer));
}

async function run(version, checks, after = async () => {}) {
  console.log(`version ${version}`);
  for (const [name, work] of Object.entries(checks)) {
    try {
      await limited(work);
      console.log(`ok ${name}`);
    } catch (e) {
      if (process.env.VERBOSE) console.error(e);
      console.log(`no ${name}: ${String(e.message).split(/\s+/).join(" ").slice(0, 300)}`);
    }
    await after().catch((e) => console.log(`no ${name}, tidied up: ${e.message}`));
  }
}

module.exports = { address, assert, fails, run, version, same: assert.deepStrictEqual };
