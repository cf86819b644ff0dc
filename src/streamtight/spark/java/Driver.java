package streamtight;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedList;
import java.util.List;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.python.EvaluatePython;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryProgress;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;

/**
 * Feeds the memory streams of one query and captures its output, inside the JVM.
 *
 * It is the query's foreachBatch function. Before that returns from one micro-batch it adds the rows of the next one, so
 * all of them are there when Spark looks for new data, and no time is lost between batches. A memory stream makes one
 * partition of every block that is added to it.
 *
 * Compiled by Janino, hence no generics. What moved between Spark versions is reached by reflection.
 */
public class Driver implements VoidFunction2 {
  private Object[][] blocks; // for each input: its blocks of rows, in order
  private int[][] blocksUpTo; // for each batch, for each input: how many blocks are there once it is fed
  private Object[] streams;
  private int[] added; // for each input: how many blocks were added
  private int next; // the next batch to feed
  private volatile int end; // the first batch not to feed
  private int most; // micro-batches to capture: with timeouts by the clock, Spark makes more of them for ever
  private StructType schema;
  private final ArrayList ids = new ArrayList(); // of all micro-batches that were captured
  private int taken; // so many of them were handed over
  private final LinkedList captured = new LinkedList(); // for each one not yet taken: for each partition its rows
  private volatile int finished; // micro-batches

  // -- rows in ----------------------------------------------------------------------------------------------------

  /** Takes the pickled ([(rows, block sizes) for each input], blocksUpTo). */
  public void load(byte[] pickled, List schemas) throws Exception {
    Object[] parts = (Object[]) new net.razorvine.pickle.Unpickler().loads(pickled);
    List inputs = (List) parts[0];
    blocks = new Object[inputs.size()][];
    for (int i = 0; i < blocks.length; i++) {
      Object[] input = (Object[]) inputs.get(i);
      blocks[i] = toBlocks((List) input[0], (List) input[1], (StructType) schemas.get(i));
    }
    List upTo = (List) parts[1];
    blocksUpTo = new int[upTo.size()][];
    for (int b = 0; b < blocksUpTo.length; b++) {
      List counts = (List) upTo.get(b);
      blocksUpTo[b] = new int[counts.size()];
      for (int i = 0; i < counts.size(); i++) {
        blocksUpTo[b][i] = ((Number) counts.get(i)).intValue();
      }
    }
  }

  private static Object[] toBlocks(List rows, List sizes, StructType schema) {
    scala.Function1 fromPython = EvaluatePython.makeFromJava(schema);
    scala.Function1 toRow =
        org.apache.spark.sql.catalyst.CatalystTypeConverters.createToScalaConverter(schema);
    Iterator row = rows.iterator();
    Object[] result = new Object[sizes.size()];
    for (int b = 0; b < result.length; b++) {
      ArrayList block = new ArrayList();
      for (int left = ((Number) sizes.get(b)).intValue(); left > 0; left--) {
        block.add(toRow.apply(fromPython.apply(row.next())));
      }
      result[b] = block;
    }
    return result;
  }

  /** A new memory stream for each input; returns their DataFrames. */
  public List open(Object session, List schemas) throws Exception {
    streams = new Object[schemas.size()];
    added = new int[schemas.size()];
    ArrayList frames = new ArrayList();
    for (int i = 0; i < streams.length; i++) {
      streams[i] = memoryStream(session, (StructType) schemas.get(i));
      frames.add(streams[i].getClass().getMethod("toDF", new Class[0]).invoke(streams[i], new Object[0]));
    }
    return frames;
  }

  private static Object memoryStream(Object session, StructType schema) throws Exception {
    Class type;
    try {
      type = Class.forName("org.apache.spark.sql.execution.streaming.runtime.MemoryStream$"); // 4.1 on
    } catch (ClassNotFoundException e) {
      type = Class.forName("org.apache.spark.sql.execution.streaming.MemoryStream$");
    }
    Object companion = type.getField("MODULE$").get(null);
    Object context = session.getClass().getMethod("sqlContext", new Class[0]).invoke(session, new Object[0]);
    Encoder encoder = Encoders.row(schema);
    Method[] methods = type.getMethods();
    for (int m = 0; m < methods.length; m++) {
      Class[] parameters = methods[m].getParameterTypes();
      if (!methods[m].getName().equals("apply") || parameters.length != 2 || parameters[0] != Encoder.class) {
        continue;
      }
      Object second = parameters[1].isInstance(session) ? session : context;
      if (parameters[1].isInstance(second)) {
        return methods[m].invoke(companion, new Object[] {encoder, second});
      }
    }
    throw new IllegalStateException("this Spark has no MemoryStream(encoder, session)");
  }

  /**
   * Adds every block up to and with this batch; the later ones up to `end` are added one batch at a time. After `most`
   * micro-batches the driver captures no more.
   */
  public void feed(int batch, int end, int most) throws Exception {
    this.end = end;
    this.most = most;
    addUpTo(batch);
  }

  private void addUpTo(int batch) throws Exception {
    for (int i = 0; i < streams.length; i++) {
      while (added[i] < blocksUpTo[batch][i]) {
        add(streams[i], (List) blocks[i][added[i]++]);
      }
    }
    next = batch + 1;
  }

  /** One more batch without rows. */
  public void feedNothing() throws Exception {
    for (int i = 0; i < streams.length; i++) {
      add(streams[i], new ArrayList());
    }
  }

  /** Lets the micro-batch that runs come to its end, and feeds no other. */
  public void feedNoMore(StreamingQuery query, long millis) throws Exception {
    end = 0;
    waitFor(query, 0, true, millis);
  }

  private static void add(Object stream, List block) throws Exception {
    Object rows = scala.jdk.javaapi.CollectionConverters.asScala(block).toSeq();
    Method method;
    try {
      method = stream.getClass().getMethod("addData", new Class[] {scala.collection.IterableOnce.class});
    } catch (NoSuchMethodException e) {
      method = stream.getClass().getMethod("addData", new Class[] {scala.collection.immutable.Seq.class});
    }
    method.invoke(stream, new Object[] {rows});
  }

  /** The blocks of an input as a static DataFrame, a block a partition. */
  public Dataset frame(org.apache.spark.sql.SparkSession session, JavaSparkContext context, int input, StructType schema) {
    JavaRDD[] partitions = new JavaRDD[blocks[input].length];
    for (int b = 0; b < partitions.length; b++) {
      partitions[b] = context.parallelize((List) blocks[input][b], 1);
    }
    return session.createDataFrame(partitions.length == 1 ? partitions[0] : context.union(partitions), schema);
  }

  // -- rows out ---------------------------------------------------------------------------------------------------

  /** What Spark calls with every micro-batch. */
  public void call(Object batch, Object id) throws Exception {
    if (finished >= most) {
      return;
    }
    capture(((Long) id).longValue(), (Dataset) batch);
    if (next < end) {
      addUpTo(next);
    }
    finished++;
  }

  /** Runs the plan of this Dataset and keeps its rows by partition. */
  public void capture(long id, Dataset batch) throws Exception {
    QueryExecution execution =
        (QueryExecution) batch.getClass().getMethod("queryExecution", new Class[0]).invoke(batch, new Object[0]);
    // A micro-batch comes as an RDD in a wrapper; to plan the wrapper again would cost as much as the batch.
    RDD rows =
        execution.logical() instanceof LogicalRDD ? ((LogicalRDD) execution.logical()).rdd() : execution.toRdd();
    Object[] partitions =
        (Object[])
            rows.sparkContext()
                .runJob(rows, new Capture(), scala.reflect.ClassTag$.MODULE$.apply(Object[].class));
    schema = execution.analyzed().schema();
    synchronized (this) {
      ids.add(Long.valueOf(id));
      captured.add(Arrays.asList(partitions));
    }
  }

  /** What was captured and not yet taken, pickled: ([batch ids], [[rows in each partition] for each], [all rows]). */
  public synchronized byte[] takeRows(boolean binaryAsBytes, long lastId) throws Exception {
    EvaluatePython.registerPicklers();
    ArrayList batchIds = new ArrayList();
    ArrayList rows = new ArrayList();
    ArrayList sizes = new ArrayList();
    while (taken < ids.size() && ((Long) ids.get(taken)).longValue() <= lastId) {
      batchIds.add(ids.get(taken++));
      ArrayList counts = new ArrayList();
      Iterator partitions = ((List) captured.removeFirst()).iterator();
      while (partitions.hasNext()) {
        Object[] partition = (Object[]) partitions.next();
        counts.add(Integer.valueOf(partition.length));
        for (int r = 0; r < partition.length; r++) {
          rows.add(toPython(partition[r], binaryAsBytes));
        }
      }
      sizes.add(counts);
    }
    Object[] result = new Object[] {batchIds, sizes, rows};
    return new net.razorvine.pickle.Pickler(true, false).dumps(result);
  }

  private static Method toJava;

  private Object toPython(Object row, boolean binaryAsBytes) throws Exception {
    if (toJava == null) {
      Method[] methods = EvaluatePython.class.getMethods();
      for (int m = 0; m < methods.length; m++) {
        Class[] parameters = methods[m].getParameterTypes();
        if (methods[m].getName().equals("toJava") && parameters.length > 1 && parameters[1] == DataType.class) {
          toJava = methods[m];
        }
      }
    }
    // 4.0 has (row, type); 4.1 adds whether binary values become bytes, 4.3 a counter of sizes.
    Object[] all = new Object[] {row, schema, Boolean.valueOf(binaryAsBytes), scala.None$.MODULE$};
    return toJava.invoke(null, Arrays.copyOf(all, toJava.getParameterCount()));
  }

  // -- the query --------------------------------------------------------------------------------------------------

  /**
   * Waits until so many micro-batches are finished and reported; `all`, until the query then waits for data. Says "done",
   * "ended" or "late".
   */
  public String waitFor(StreamingQuery query, int batches, boolean all, long millis) throws Exception {
    long limit = System.nanoTime() + millis * 1000000L;
    while (true) {
      if (!query.isActive()) {
        return "ended";
      }
      boolean isEnough = all ? query.status().message().equals("Waiting for data to arrive") : isReported(query, batches);
      if ((finished >= most && isReported(query, most)) || (finished >= batches && isEnough)) {
        return "done";
      }
      if (System.nanoTime() > limit) {
        return "late";
      }
      Thread.sleep(1);
    }
  }

  /** Whether Spark has reported on so many of the micro-batches that were captured, which it does after the commit. */
  private synchronized boolean isReported(StreamingQuery query, int batches) {
    StreamingQueryProgress report = query.lastProgress();
    return report != null && ids.size() >= batches && report.batchId() >= ((Long) ids.get(batches - 1)).longValue();
  }

  /** Spark's own reports on the micro-batches, without the first ones, as a JSON list. */
  public static String progress(StreamingQuery query, int first) {
    StreamingQueryProgress[] reports = query.recentProgress();
    StringBuilder json = new StringBuilder("[");
    for (int i = first; i < reports.length; i++) {
      json.append(i > first ? "," : "").append(reports[i].json());
    }
    return json.append("]").toString();
  }
}
