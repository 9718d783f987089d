-- A TPC-C-like mix for Debian's sysbench, on Terrace and on PostgreSQL: the specification's nine tables, their keys and
-- foreign keys, its five transactions in its shares, no think times, prepared statements.
--   sysbench bench/tpcc.lua --db-driver=pgsql --pgsql-host=... --pgsql-port=... --warehouses=2 prepare
--   sysbench bench/tpcc.lua ... --threads=8 --time=60 run
--   sysbench bench/tpcc.lua ... check          the specification's conditions 1 to 4, 8 and 9, over all warehouses
-- Source: TPC-C, revision 5.11, clauses 1.3 (tables), 2 (transactions), 3.3.2 (conditions), 4.3 (rows). Different: texts
-- are `text`, strings are shorter where nothing reads them, a warehouse may have fewer items and customers, terminals
-- have no home warehouse, and deliveries are not deferred.
local ffi = require("ffi")
ffi.cdef [[
  typedef struct { long seconds; long nanoseconds; } moment;
  int clock_gettime(int clock, moment *now);
]]

sysbench.cmdline.options = {
  warehouses = { "Warehouses", 1 },
  items = { "Items, and so stock rows of a warehouse", 100000 },
  customers = { "Customers of each of a warehouse's ten districts; at first each has an order", 3000 },
  times = { "File that gets a line for each transaction, when it ends: 0 0 0 0 SECOND MICROSECOND; a thread's number is added", "" },
}

local DISTRICTS, BATCH = 10, 500
local PARTS = { "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING" }
local con, statements, options, times
local random = sysbench.rand.uniform

local function text(length) return sysbench.rand.string(string.rep("@", length)) end
-- Clause 2.1.6, with a constant of 0.
local function uneven(a, least, most) return bit.bor(random(0, a), random(least, most)) % (most - least + 1) + least end
local function last_name(number)
  return PARTS[math.floor(number / 100) % 10 + 1] .. PARTS[math.floor(number / 10) % 10 + 1] .. PARTS[number % 10 + 1]
end
local function some_customer() return uneven(1023, 1, options.customers) end
local function some_item() return uneven(8191, 1, options.items) end
local function some_name() return last_name(uneven(255, 0, math.min(options.customers, 1000) - 1)) end

local TABLES = {
  [[warehouse (w_id int PRIMARY KEY, w_name text, w_street text, w_city text, w_zip text, w_tax numeric(4, 4), w_ytd numeric(12, 2))]],
  [[district (d_w_id int REFERENCES warehouse, d_id int, d_name text, d_street text, d_city text, d_tax numeric(4, 4),
    d_ytd numeric(12, 2), d_next_o_id int, PRIMARY KEY (d_w_id, d_id))]],
  [[customer (c_w_id int, c_d_id int, c_id int, c_first text, c_last text, c_credit text, c_discount numeric(4, 4),
    c_balance numeric(12, 2), c_ytd_payment numeric(12, 2), c_payment_cnt int, c_delivery_cnt int, c_data text,
    PRIMARY KEY (c_w_id, c_d_id, c_id), FOREIGN KEY (c_w_id, c_d_id) REFERENCES district)]],
  [[history (h_c_id int, h_c_d_id int, h_c_w_id int, h_d_id int, h_w_id int, h_date timestamp, h_amount numeric(6, 2), h_data text,
    FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer, FOREIGN KEY (h_w_id, h_d_id) REFERENCES district)]],
  [[orders (o_w_id int, o_d_id int, o_id int, o_c_id int, o_entry_d timestamp, o_carrier_id int, o_ol_cnt int, o_all_local int,
    PRIMARY KEY (o_w_id, o_d_id, o_id), FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer)]],
  [[new_orders (no_w_id int, no_d_id int, no_o_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id),
    FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders)]],
  [[item (i_id int PRIMARY KEY, i_im_id int, i_name text, i_price numeric(5, 2), i_data text)]],
  [[stock (s_w_id int REFERENCES warehouse, s_i_id int REFERENCES item, s_quantity int, s_dist text, s_ytd int, s_order_cnt int,
    s_remote_cnt int, s_data text, PRIMARY KEY (s_w_id, s_i_id))]],
  [[order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int, ol_supply_w_id int, ol_delivery_d timestamp,
    ol_quantity int, ol_amount numeric(6, 2), ol_dist_info text, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number),
    FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders, FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES stock)]],
}
local INDEXES = {
  "customer_names ON customer (c_w_id, c_d_id, c_last, c_first)",
  "orders_of_customers ON orders (o_w_id, o_d_id, o_c_id, o_id)",
}

-- Rows in statements of BATCH rows, each statement a transaction.
local function filler(into)
  local rows = {}
  local function flush()
    if #rows > 0 then con:query("INSERT INTO " .. into .. " VALUES " .. table.concat(rows, ", ")) end
    rows = {}
  end
  local function row(...)
    rows[#rows + 1] = string.format(...)
    if #rows == BATCH then flush() end
  end
  return row, flush
end

local function load_district(w, d)
  local count, open = options.customers, math.floor(options.customers * 0.7)
  local customer, customers_done = filler("customer")
  local past, past_done = filler("history")
  for c = 1, count do
    customer("(%d, %d, %d, '%s', '%s', '%s', %.4f, -10, 10, 1, 0, '%s')", w, d, c, text(12), last_name(c <= 1000 and c - 1 or uneven(255, 0, 999)),
      random(1, 10) == 1 and "BC" or "GC", random(0, 5000) / 10000, text(250))
  end
  customers_done()
  for c = 1, count do past("(%d, %d, %d, %d, %d, now(), 10, '%s')", c, d, w, d, w, text(16)) end
  past_done()
  local order, orders_done = filler("orders")
  local line, lines_done = filler("order_line")
  local new, new_done = filler("new_orders")
  local turn, lines = {}, {}
  for c = 1, count do turn[c] = c end
  for c = count, 2, -1 do
    local other = random(1, c)
    turn[c], turn[other] = turn[other], turn[c]
  end
  for o = 1, count do
    lines[o] = random(5, 15)
    order("(%d, %d, %d, %d, now(), %s, %d, 1)", w, d, o, turn[o], o <= open and tostring(random(1, 10)) or "NULL", lines[o])
  end
  orders_done()
  for o = 1, count do
    for n = 1, lines[o] do
      line("(%d, %d, %d, %d, %d, %d, %s, 5, %.2f, '%s')", w, d, o, n, random(1, options.items), w, o <= open and "now()" or "NULL",
        o <= open and 0 or random(1, 999999) / 100, text(24))
    end
    if o > open then new("(%d, %d, %d)", w, d, o) end
  end
  lines_done()
  new_done()
end

local function load_warehouse(w)
  con:query(string.format("INSERT INTO warehouse VALUES (%d, '%s', '%s', '%s', '%s', %.4f, %d)", w, text(8), text(16), text(12), text(9),
    random(0, 2000) / 10000, DISTRICTS * options.customers * 10))
  local stock, done = filler("stock")
  for i = 1, options.items do stock("(%d, %d, %d, '%s', 0, 0, 0, '%s')", w, i, random(10, 100), text(240), text(38)) end
  done()
  for d = 1, DISTRICTS do
    con:query(string.format("INSERT INTO district VALUES (%d, %d, '%s', '%s', '%s', %.4f, %d, %d)", w, d, text(8), text(16), text(12),
      random(0, 2000) / 10000, options.customers * 10, options.customers + 1))
    load_district(w, d)
  end
end

local function open()
  options = sysbench.opt
  con = sysbench.sql.driver():connect()
end

function prepare()
  open()
  for _, columns in ipairs(TABLES) do con:query("CREATE TABLE " .. columns) end
  for _, columns in ipairs(INDEXES) do con:query("CREATE INDEX " .. columns) end
  local item, done = filler("item")
  for i = 1, options.items do item("(%d, %d, '%s', %.2f, '%s')", i, random(1, 10000), text(20), random(100, 10000) / 100, text(38)) end
  done()
  for w = 1, options.warehouses do load_warehouse(w) end
  print(string.format("%d warehouses of %d items and %d customers", options.warehouses, options.items, DISTRICTS * options.customers))
end

function cleanup()
  open()
  for t = #TABLES, 1, -1 do con:query("DROP TABLE IF EXISTS " .. TABLES[t]:match("^%S+")) end
end

-- Statements by name: kinds of parameters, and after "=" of the columns that are used. i an integer, t a text, n a number
-- with digits (sent as a text). sysbench asks for results in binary form, and has room for 255 bytes of a text.
local SQL = {
  warehouse_tax = { "i", "SELECT w_tax FROM warehouse WHERE w_id = ?" },
  customer = { "iii", "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?" },
  next_order = { "ii=i", "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ? RETURNING d_next_o_id - 1, d_tax" },
  order = { "iiiiii", "INSERT INTO orders VALUES (?, ?, ?, ?, now(), NULL, ?, ?)" },
  new_order = { "iii", "INSERT INTO new_orders VALUES (?, ?, ?)" },
  item = { "i=t", "SELECT i_price::text, i_name, i_data FROM item WHERE i_id = ?" },
  stock = { "ii=itt", "SELECT s_quantity, s_data, s_dist FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE" },
  take = { "iiiii", "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?" },
  line = { "iiiiiiint", "INSERT INTO order_line VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?::numeric, ?)" },
  pay_warehouse = { "ni=t", "UPDATE warehouse SET w_ytd = w_ytd + ?::numeric WHERE w_id = ? RETURNING w_name" },
  pay_district = { "nii=t", "UPDATE district SET d_ytd = d_ytd + ?::numeric WHERE d_w_id = ? AND d_id = ? RETURNING d_name" },
  named = { "iit=i", "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first" },
  pay = { "nniii=tt", "UPDATE customer SET c_balance = c_balance - ?::numeric, c_ytd_payment = c_ytd_payment + ?::numeric, c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? RETURNING c_credit, c_data" },
  bad_credit = { "tiii", "UPDATE customer SET c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?" },
  history = { "iiiiint", "INSERT INTO history VALUES (?, ?, ?, ?, ?, now(), ?::numeric, ?)" },
  balance = { "iii", "SELECT c_balance, c_first, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?" },
  last_order = { "iii=i", "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1" },
  lines = { "iii", "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?" },
  oldest = { "ii=i", "SELECT no_o_id FROM new_orders WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE" },
  delivered = { "iii", "DELETE FROM new_orders WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?" },
  carry = { "iiii=i", "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? RETURNING o_c_id" },
  deliver_lines = { "iii", "UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?" },
  worth = { "iii=t", "SELECT sum(ol_amount)::text FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?" },
  owe = { "niii", "UPDATE customer SET c_balance = c_balance + ?::numeric, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?" },
  next_id = { "ii=i", "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?" },
  low = { "iiiiii", "SELECT count(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?" },
}

local function prepared(kinds, sql)
  local statement, parameters, columns = con:prepare(sql), {}, kinds:match("=(.*)") or ""
  kinds = kinds:match("^[^=]*")
  for n = 1, #kinds do
    local number = kinds:sub(n, n) == "i"
    parameters[n] = number and statement:bind_create(sysbench.sql.type.INT) or statement:bind_create(sysbench.sql.type.VARCHAR, 250)
  end
  statement:bind_param(unpack(parameters))
  return { statement = statement, parameters = parameters, columns = columns }
end

-- A result is valid until the next one of the connection.
local function execute(name, ...)
  local of = statements[name]
  for n = 1, #of.parameters do of.parameters[n]:set((select(n, ...))) end
  return of.statement:execute()
end
local function value(bytes, kind)
  if kind ~= "i" or not bytes then return bytes end
  local a, b, c, d = bytes:byte(1, 4)
  return bit.bor(bit.lshift(a, 24), bit.lshift(b, 16), bit.lshift(c, 8), d)
end
-- Those columns of the first row that are used.
local function first(name, ...)
  local result, values, columns = execute(name, ...), {}, statements[name].columns
  if result.nrows > 0 then
    local row = result:fetch_row()
    for n = 1, #columns do values[n] = value(row[n], columns:sub(n, n)) end
  end
  return values[1], values[2], values[3]
end
-- The first column of all rows.
local function all(name, ...)
  local result, rows, kind = execute(name, ...), {}, statements[name].columns
  for r = 1, tonumber(result.nrows) do rows[r] = value(result:fetch_row()[1], kind) end
  return rows
end
function thread_init()
  open()
  statements = {}
  for name, of in pairs(SQL) do statements[name] = prepared(of[1], of[2]) end
  if options.times ~= "" then times = assert(io.open(options.times .. "." .. sysbench.tid, "w")) end
end

function thread_done()
  if times then times:close() end
  con:disconnect()
end

-- Clause 2.4. One of a hundred names an item that is not there, and is rolled back.
local function new_order()
  local w, d, c, count, lines, rolled_back = random(1, options.warehouses), random(1, DISTRICTS), some_customer(), random(5, 15), {}, random(1, 100) == 1
  local all_local = 1
  for n = 1, count do
    local supply = w
    if options.warehouses > 1 and random(1, 100) == 1 then
      repeat supply = random(1, options.warehouses) until supply ~= w
      all_local = 0
    end
    lines[n] = { item = some_item(), supply = supply, quantity = random(1, 10) }
  end
  -- In the order of their keys: two orders with the same items do not wait for each other in a circle.
  table.sort(lines, function(a, b) return a.supply < b.supply or a.supply == b.supply and a.item < b.item end)
  if rolled_back then lines[count].item = options.items + 1 end
  con:query("BEGIN")
  first("warehouse_tax", w)
  first("customer", w, d, c)
  local o = first("next_order", w, d)
  execute("order", w, d, o, c, count, all_local)
  execute("new_order", w, d, o)
  for n, of in ipairs(lines) do
    local price = first("item", of.item)
    if not price then
      con:query("ROLLBACK")
      return
    end
    local there, _, info = first("stock", of.supply, of.item)
    local left = there - of.quantity
    execute("take", left >= 10 and left or left + 91, of.quantity, of.supply == w and 0 or 1, of.supply, of.item)
    execute("line", w, d, o, n, of.item, of.supply, of.quantity, string.format("%.2f", tonumber(price) * of.quantity), info:sub(d * 24 - 23, d * 24))
  end
  con:query("COMMIT")
end

-- Clause 2.5.2.2: the middle one of those of the name, three times of five; else by number.
local function chosen(w, d)
  if random(1, 100) > 60 then return some_customer() end
  local named = all("named", w, d, some_name())
  return #named > 0 and named[math.ceil(#named / 2)] or some_customer()
end

local function payment()
  local w, d = random(1, options.warehouses), random(1, DISTRICTS)
  local from, from_d, amount = w, d, string.format("%.2f", random(100, 500000) / 100)
  if options.warehouses > 1 and random(1, 100) > 85 then
    repeat from = random(1, options.warehouses) until from ~= w
    from_d = random(1, DISTRICTS)
  end
  con:query("BEGIN")
  local c = chosen(from, from_d)
  local warehouse, district = first("pay_warehouse", amount, w), first("pay_district", amount, w, d)
  local credit, data = first("pay", amount, amount, from, from_d, c)
  if credit == "BC" then
    execute("bad_credit", string.format("%d %d %d %d %d %s|%s", c, from_d, from, d, w, amount, data):sub(1, 250), from, from_d, c)
  end
  execute("history", c, from_d, from, d, w, amount, warehouse .. "    " .. district)
  con:query("COMMIT")
end

local function order_status()
  local w, d = random(1, options.warehouses), random(1, DISTRICTS)
  con:query("BEGIN")
  local c = chosen(w, d)
  first("balance", w, d, c)
  local o = first("last_order", w, d, c)
  if o then all("lines", w, d, o) end
  con:query("COMMIT")
end

local function delivery()
  local w, carrier = random(1, options.warehouses), random(1, 10)
  con:query("BEGIN")
  for d = 1, DISTRICTS do
    local o = first("oldest", w, d)
    if o then
      execute("delivered", w, d, o)
      local c = first("carry", carrier, w, d, o)
      execute("deliver_lines", w, d, o)
      local worth = first("worth", w, d, o)
      execute("owe", worth, w, d, c)
    end
  end
  con:query("COMMIT")
end

local function stock_level()
  local w, d = random(1, options.warehouses), random(1, DISTRICTS)
  con:query("BEGIN")
  local next_id = first("next_id", w, d)
  first("low", w, d, next_id - 20, next_id, w, random(10, 20))
  con:query("COMMIT")
end

-- Clause 5.2.3's least shares; new orders have what is left.
function event()
  local die = random(1, 100)
  if die <= 45 then new_order()
  elseif die <= 88 then payment()
  elseif die <= 92 then order_status()
  elseif die <= 96 then delivery()
  else stock_level() end
  if times then
    local now = ffi.new("moment")
    ffi.C.clock_gettime(0, now)
    times:write(string.format("0 0 0 0 %d %d\n", tonumber(now.seconds), tonumber(now.nanoseconds) / 1000))
  end
end

-- What sysbench undoes and does again: a deadlock, a write conflict.
function sysbench.hooks.before_restart_event() con:query("ROLLBACK") end

-- Each counts what is wrong.
local CONDITIONS = {
  ["1: a warehouse's payments are its districts'"] = [[SELECT count(*) FROM warehouse WHERE w_ytd <> (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)]],
  ["2: the newest order and new order are the district's last"] = [[SELECT count(*) FROM district JOIN
    (SELECT o_w_id, o_d_id, max(o_id) AS newest FROM orders GROUP BY 1, 2) AS o ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN
    (SELECT no_w_id, no_d_id, max(no_o_id) AS newest FROM new_orders GROUP BY 1, 2) AS n ON no_w_id = d_w_id AND no_d_id = d_id
    WHERE o.newest <> d_next_o_id - 1 OR n.newest <> d_next_o_id - 1]],
  ["3: new orders have no gaps"] = [[SELECT count(*) FROM (SELECT 1 FROM new_orders GROUP BY no_w_id, no_d_id
    HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) AS gaps]],
  ["4: orders have the lines that they count"] = [[SELECT count(*) FROM
    (SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS n FROM orders GROUP BY 1, 2) AS o JOIN
    (SELECT ol_w_id AS w, ol_d_id AS d, count(*) AS n FROM order_line GROUP BY 1, 2) AS l ON o.w = l.w AND o.d = l.d WHERE o.n <> l.n]],
  ["8: a warehouse's payments are in its history"] = [[SELECT count(*) FROM warehouse WHERE w_ytd <> (SELECT sum(h_amount) FROM history WHERE h_w_id = w_id)]],
  ["9: a district's payments are in its history"] = [[SELECT count(*) FROM district WHERE d_ytd <> (SELECT sum(h_amount) FROM history WHERE h_w_id = d_w_id AND h_d_id = d_id)]],
}

local function check()
  open()
  local wrong = 0
  for name, sql in pairs(CONDITIONS) do
    local found = tonumber(con:query_row(sql))
    if found ~= 0 then
      print(string.format("condition %s: %d times not", name, found))
      wrong = wrong + 1
    end
  end
  if wrong > 0 then os.exit(1) end
  print("all conditions hold")
end
sysbench.cmdline.commands = { check = { check } }
